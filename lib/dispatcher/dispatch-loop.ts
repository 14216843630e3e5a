import type { DispatchAnswer } from '../contract/task-verbs.js';

/** What one dispatcher does, and how it takes it. */
export interface DispatchPlan {
  /** One attempt. */
  readonly dispatch: () => Promise<DispatchAnswer>;
  /** Told what was moved; answers after how many ms to look again. */
  readonly answered: (answer: DispatchAnswer) => number;
  /** Told what failed, and how often in a row; answers after how many ms to try again. What it throws ends the loop. */
  readonly failed: (error: unknown, tries: number) => number;
}

/** Moves, waits, and moves again, until it is stopped. One call at a time; a lost answer does no harm, since every task is moved once. */
export class DispatchLoop {
  private stopped = false;
  private failures = 0;
  private endPause: () => void = () => undefined;

  constructor(private readonly plan: DispatchPlan) {}

  /** Resolves once it was stopped, and rejects with what `failed` throws. */
  async run(): Promise<void> {
    while (!this.stopped) await this.pause(await this.look());
  }

  /** Ends a pause, so that the next look is now. */
  wake(): void {
    this.endPause();
  }

  /** Nothing is called any more; a call that is on its way still ends, and is still told. */
  stop(): void {
    this.stopped = true;
    this.wake();
  }

  /** Answers after how many ms to look again. */
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
