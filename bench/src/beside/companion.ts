import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { now } from '../measure/clock.js';
import type { Acts, Answer, Question } from './protocol.js';

/** Largest difference between the clocks of two processes; a larger one would look like latency. */
const CLOCK_SLACK_MS = 0.02;

type Argument<A extends Acts, N extends keyof A> = Parameters<A[N]> extends [] ? [] : [Parameters<A[N]>[0]];

/** Another process of the measurement. It answers calls, and ends with this process. */
export class Companion<A extends Acts> {
  private readonly open = new Map<number, (answer: Answer) => void>();
  private asked = 0;
  private gone: string | undefined;

  /** Starts a program that calls `serve`, and checks that its clock agrees with the clock of this process. */
  static async start<A extends Acts>(program: URL): Promise<Companion<A>> {
    // Stdout is for the table.
    const child = fork(program, { stdio: ['ignore', 2, 2, 'ipc'], serialization: 'advanced' });
    const companion = new Companion<A>(child);
    for (let i = 0; i < 5; i++) {
      const before = now();
      const theirs = (await companion.request('clock', undefined)) as number;
      const after = now();
      if (theirs < before - CLOCK_SLACK_MS || theirs > after + CLOCK_SLACK_MS) {
        throw new Error(
          `the clocks of two processes differ: ${theirs} is not between ${before} and ${after}`,
        );
      }
    }
    return companion;
  }

  private constructor(private readonly child: ChildProcess) {
    child.on('message', (answer: Answer) => this.take(answer));
    child.on('exit', (code, signal) => this.fail(`ended with ${signal ?? `code ${code}`}`));
    child.on('error', (error) => this.fail(error.message));
  }

  ask<N extends keyof A & string>(act: N, ...[argument]: Argument<A, N>): Promise<Awaited<ReturnType<A[N]>>> {
    return this.request(act, argument) as Promise<Awaited<ReturnType<A[N]>>>;
  }

  async end(): Promise<void> {
    if (this.gone !== undefined) return;
    const exit = once(this.child, 'exit');
    this.child.disconnect();
    await exit;
  }

  private async request(act: string, argument: unknown): Promise<unknown> {
    if (this.gone !== undefined) throw new Error(`a companion process ${this.gone}`);
    const id = this.asked++;
    const answered = new Promise<Answer>((resolve) => this.open.set(id, resolve));
    this.child.send({ id, act, argument } satisfies Question);
    const { value, error } = await answered;
    if (error !== undefined) throw new Error(`${act} in a companion process: ${error}`);
    return value;
  }

  private take(answer: Answer): void {
    this.open.get(answer.id)?.(answer);
    this.open.delete(answer.id);
  }

  private fail(why: string): void {
    this.gone = why;
    for (const id of this.open.keys()) this.take({ id, error: why });
  }
}
