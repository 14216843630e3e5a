import { Queue as BullQueue5, Worker as BullWorker5 } from 'bullmq-5';
import { Queue as BullQueue6, Worker as BullWorker6 } from 'bullmq';
import {
  Handle,
  type Job,
  Processor,
  type Queue,
  type QueueEvent,
  QueueEvents,
  QueueModule,
  getQueueToken,
} from 'godwit';
import { bootApp } from '../../../../test/support/app.js';
import { atEnd } from '../../../../test/support/cleanup.js';
import { collect, type Collected } from '../../../../test/support/wait.js';

/** Both live lines of BullMQ, by their major version. */
export const BULLS = {
  5: { Queue: BullQueue5, Worker: BullWorker5 },
  // The parts in use have the same form.
  6: { Queue: BullQueue6, Worker: BullWorker6 } as unknown as {
    Queue: typeof BullQueue5;
    Worker: typeof BullWorker5;
  },
} as const;

export type Major = keyof typeof BULLS;

/** A queue of BullMQ on this server, with its default prefix; it is emptied at the end of the test. */
export function oldQueue(major: Major, url: string, name = 'audio'): BullQueue5 {
  const queue = new BULLS[major].Queue(name, { connection: { url } });
  atEnd(async () => {
    await queue.obliterate({ force: true });
    await queue.close();
  });
  return queue;
}

/** A worker of BullMQ; what its function answers is nobody's business. */
export function oldWorker(major: Major, url: string, work: (id: string) => unknown): BullWorker5 {
  const worker = new BULLS[major].Worker('audio', async (job) => work(job.id!), {
    connection: { url },
    concurrency: 10,
  });
  atEnd(() => worker.close());
  return worker;
}

export interface NewSide {
  readonly audio: Queue;
  readonly events: Collected<QueueEvent>;
  /** The id of each run, in the order of their starts. */
  readonly runs: string[];
}

/** An application on the new queue: it works on it, or only adds. */
export async function newSide(
  redis: { readonly url: string; readonly prefix: string },
  role: 'both' | 'producer' = 'both',
): Promise<NewSide> {
  const runs: string[] = [];
  @Processor('audio')
  class AudioProcessor {
    @Handle()
    run(job: Job) {
      runs.push(job.id);
    }
  }
  const { get } = await bootApp({
    imports: [
      QueueModule.forRoot({ connection: redis.url, prefix: redis.prefix, role }),
      QueueModule.registerQueue({ name: 'audio' }),
    ],
    providers: [AudioProcessor],
  });
  return {
    audio: get<Queue>(getQueueToken('audio')),
    events: collect(get(QueueEvents).of('audio', { since: '0' })),
    runs,
  };
}
