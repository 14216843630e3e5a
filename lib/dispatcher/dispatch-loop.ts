import type { DispatchAnswer } from '../contract/task-verbs.js';

/** The calls and callbacks of one dispatcher. */
interface DispatchPlan {
  /** One attempt. */
  readonly dispatch: () => Promise<DispatchAnswer>;
  /** Called with the result of a call; returns the ms until the next one. */
  readonly answered: (answer: DispatchAnswer) => number;
  /** Called with the error and the number of failures in a row; returns the ms until the next attempt. If it throws, the loop ends. */
  readonly failed: (error: unknown, tries: number) => number;
}

/**
 * Moves tasks in a loop until it is stopped, with one call at a time. A lost reply does no harm, because every task is moved
 * once.
 */
export class DispatchLoop {
  private stopped = false;
  private failures = 0;
  private endPause: () => void = () => undefined;

  constructor(private readonly plan: DispatchPlan) {}

  /** Resolves when it was stopped; rejects with an error thrown by `failed`. */
  async run(): Promise<void> {
    while (!this.stopped) await this.pause(await this.look());
  }

  /** Ends a pause, so that the next call is made now. */
  wake(): void {
    this.endPause();
  }

  /** Ends the loop. A call in flight still ends and is reported. */
  stop(): void {
    this.stopped = true;
    this.wake();
  }

  /** Returns the ms until the next call. */
  private async look(): Promise<number> {
    let answer: DispatchAnswer;
    try {
      answer = await this.plan.dispatch();
    } catch (error) {
      this.failures += 1;
      return this.stopped ? 0 : this.plan.failed(error, this.failures);
    }
    this.failures = 0;
    return this.plan.answered(answer);
  }

  private pause(ms: number): Promise<void> {
    if (this.stopped || ms <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.endPause(), ms);
      this.endPause = () => {
        clearTimeout(timer);
        this.endPause = () => undefined;
        resolve();
      };
    });
  }
}
