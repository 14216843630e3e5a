import { expect, it } from 'vitest';
import type { BeatAnswer } from '#lib/contract/engine.js';
import { atEnd } from '../support/cleanup.js';
import { latch, until } from '../support/wait.js';
import { claimed, idle, withoutBell } from './slow-engine.js';

it('does not start a prefetched job that was cancelled, and gives it back', async () => {
  const engine = withoutBell();
  const ran: string[] = [];
  const maySuspect: boolean[] = [];
  const first = latch('the end of the first job');
  // Right after the first has started, before the worker gives back the jobs that it has had for long.
  const beat = () => {
    const cancels = new Map([['b', 'not wanted']]);
    const answer: BeatAnswer = { kind: 'alive', held: 3, exchanges: 2, cancels };
    maySuspect.push(pool.claimer.maySuspect());
    engine.plan!.onBeat('work', pool.worker, answer);
    maySuspect.push(pool.claimer.maySuspect());
    first.open();
  };
  const run = ({ id }: { readonly id: string }) => {
    ran.push(id);
    if (id !== 'a') return undefined;
    queueMicrotask(beat);
    return first.promise;
  };
  const { pool } = await idle({ engine, concurrency: 1, run });
  atEnd(() => first.open());
  await until(() => engine.blocks.length === 1);
  engine.blocks[0]!.open('work');
  await until(() => engine.exchanges.length === 2);
  engine.exchanges[1]!.answer.open(claimed(['a', 'b', 'c'], ['b']));
  const settled = () => engine.exchanges.flatMap(({ call }) => call.settled);
  await until(() => {
    engine.answerAll();
    return settled().length === 3;
  });
  const outcomes = new Map(settled().map(({ id, outcome }) => [id, outcome.kind]));
  expect(outcomes.get('b')).toBe('released');
  expect(outcomes.get('a')).toBe('completed');
  expect(ran).not.toContain('b');
  expect(maySuspect).toEqual([false, true]);
});
