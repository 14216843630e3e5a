import { type Queue, type QueueEvent, QueueEvents, getQueueToken } from 'godwit';
import { bootApp } from '../../../../test/support/app.js';
import { atEnd } from '../../../../test/support/cleanup.js';
import { Logs } from '../../../../test/support/queue-app.js';
import type { TestRedis } from '../../../../test/support/redis.js';
import { collect, type Collected } from '../../../../test/support/wait.js';
import { AppModule } from '../../after/src/app.module.js';

/** The ported application, as `main.ts` starts it, on a free port. */
export interface Sample {
  readonly url: string;
  readonly audio: Queue;
  readonly events: Collected<QueueEvent>;
  readonly logs: Logs;
}

export async function startSample(redis: Pick<TestRedis, 'url' | 'prefix'>): Promise<Sample> {
  const before = { ...process.env };
  process.env.REDIS_URL = redis.url;
  process.env.QUEUE_PREFIX = redis.prefix;
  atEnd(() => {
    process.env = before;
  });
  const logs = new Logs();
  const { url, get } = await bootApp({ imports: [AppModule], http: true, logger: logs });
  const events = get(QueueEvents);
  const collected = collect(events.of('audio', { since: '0' }));
  // The listener of the application hears what happens from now on.
  await events.ready('audio');
  return { url, audio: get<Queue>(getQueueToken('audio')), events: collected, logs };
}
