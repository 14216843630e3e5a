import { QUEUE_ENGINE, getQueueToken } from '#lib/decorators/metadata.js';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import type { LinkEvent, QueueEngine } from '#lib/contract/engine.js';
import type { Job } from '#lib/job/job.js';
import type { QueueModuleOptions } from '#lib/options/module-options.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { bootApp, type BootOptions } from '../../support/app.js';
import { until } from '../../support/wait.js';

export interface WorkingApp {
  readonly queue: Queue;
  readonly engine: QueueEngine;
  /** How often each job has run. */
  readonly runs: ReadonlyMap<string, number>;
  /** The reports of the connections. */
  readonly links: readonly LinkEvent[];
  /** Starts the workers if `autoStart: false` was given. */
  readonly start: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** An application that adds to one queue, works on it, and counts the runs. */
export async function bootWorking(
  root: QueueModuleOptions,
  run: (job: Job) => unknown = () => undefined,
  { queue = 'work', ...boot }: Pick<BootOptions, 'logger'> & { readonly queue?: string } = {},
): Promise<WorkingApp> {
  const runs = new Map<string, number>();
  @Processor(queue)
  class Counting {
    @Handle()
    run(job: Job) {
      runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
      return run(job);
    }
  }
  const imports = [QueueModule.forRoot(root), QueueModule.registerQueue({ name: queue })];
  const { get, close } = await bootApp({ imports, providers: [Counting], ...boot });
  const engine = get<QueueEngine>(QUEUE_ENGINE);
  const start = () => get(QueueRuntime).start();
  const links: LinkEvent[] = [];
  engine.onLink((event) => links.push(event));
  return { queue: get<Queue>(getQueueToken(queue)), engine, runs, links, start, close };
}

/** Resolves when nothing waits, runs or is kept. */
export const drained = ({ queue }: Pick<WorkingApp, 'queue'>): Promise<unknown> =>
  until(async () => Object.values(await queue.counts()).every((count) => count === 0), {
    timeout: 60_000,
    what: 'everything is done',
  });

/** Resolves when nothing waits or runs. Kept jobs do not matter. */
export function emptied(queue: Queue, timeout = 60_000): Promise<unknown> {
  const isEmpty = async () => {
    const { waiting, delayed, active } = await queue.counts();
    return waiting + delayed + active === 0;
  };
  return until(isEmpty, { timeout, what: 'everything is done' });
}
