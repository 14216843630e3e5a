import { now } from '../measure/clock.js';
import type { Acts, Answer, Question } from './protocol.js';

/** Answers the calls of the parent process, and ends with it. */
export function serve(acts: Acts): void {
  const all: Acts = { ...acts, clock: now };
  process.on('disconnect', () => process.exit(1));
  process.on('message', ({ id, act, argument }: Question) => {
    void answer(id, () => all[act]!(argument as never));
  });
}

async function answer(id: number, act: () => unknown): Promise<void> {
  let said: Answer;
  try {
    said = { id, value: await act() };
  } catch (error) {
    said = { id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  process.send!(said);
}
