import { type Queue, type QueueEvent, QueueEvents, getQueueToken } from 'godwit';
import { bootApp } from '../../../../test/support/app.js';
import type { TestRedis } from '../../../../test/support/redis.js';
import { collect, type Collected } from '../../../../test/support/wait.js';
import { AppModule } from '../../src/app.module.js';
import { CHORES } from '../../src/chores/chores.js';
import type { ScheduleView } from '../../src/schedules/schedule-view.js';
import { Settings } from '../../src/settings.js';

/** The whole sample, as `main.ts` starts it, on a free port. */
export interface Sample {
  readonly url: string;
  readonly chores: Queue;
  readonly events: Collected<QueueEvent>;
  list(): Promise<ScheduleView[]>;
  show(id: string): Promise<ScheduleView>;
  post(path: string): Promise<Response>;
  stop(): Promise<void>;
  /** Ends every connection to the sample, as a proxy that restarts would. */
  cutConnections(): void;
}

export async function startSample(redis: TestRedis): Promise<Sample> {
  const settings = new Settings({ REDIS_URL: redis.url, QUEUE_PREFIX: redis.prefix });
  const { app, url, get, close } = await bootApp({
    imports: [AppModule],
    http: true,
    override: (module) => module.overrideProvider(Settings).useValue(settings),
  });
  const list = async () => (await (await fetch(`${url}/schedules`)).json()) as ScheduleView[];
  return {
    url,
    chores: get<Queue>(getQueueToken(CHORES)),
    events: collect(get(QueueEvents).of(CHORES, { since: '0' })),
    list,
    show: async (id) => (await list()).find((schedule) => schedule.id === id)!,
    post: (path) => fetch(url + path, { method: 'POST' }),
    stop: close,
    cutConnections: () => app.getHttpServer().closeAllConnections(),
  };
}
