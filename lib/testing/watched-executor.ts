import { Log } from '../contract/log.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { Executor } from '../worker/executor.js';
import type { HandlerEntry } from '../worker/handler.js';
import type { Run } from '../worker/run.js';

/** How a run ended, as the handler said it: the store keeps less. */
export interface Ending {
  readonly result?: unknown;
  readonly error?: unknown;
  readonly isCancelled?: boolean;
}

/** Runs jobs as a worker does, and keeps what comes out. */
export class WatchedExecutor extends Executor {
  private readonly endings = new WeakMap<Run, Ending>();

  constructor(queue: ResolvedQueueOptions, ended: (run: Run, ending: Ending) => void) {
    super(queue, (run) => ended(run, this.endingOf(run)), new Log('QueueWorker'));
  }

  protected override returned(run: Run, value: unknown, handler: HandlerEntry): void {
    if (!run.closed) this.endings.set(run, { result: value });
    super.returned(run, value, handler);
  }

  protected override failed(run: Run, error: unknown, handler: HandlerEntry): void {
    if (!run.closed) this.endings.set(run, { error });
    super.failed(run, error, handler);
  }

  private endingOf(run: Run): Ending {
    const ending = this.endings.get(run) ?? {};
    return run.aborted?.reason === 'cancelled' ? { ...ending, isCancelled: true } : ending;
  }
}
