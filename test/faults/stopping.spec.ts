import { afterEach, expect, it } from 'vitest';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueMetricsModule } from '#lib/subpaths/prometheus.js';
import { atEnd } from '../support/cleanup.js';
import { startCut, type Cut } from '../support/cut.js';
import { bootQueue, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { Listening, Planned } from './support/listening.js';
import { timed } from './support/timed.js';

const server = useServer();
const redis = useRedis({ server, rights: 'all' });
/** However long `shutdown.timeout` is: it is for jobs that run, and none does. */
const STOP_MS = 2_000;

// Also after a test that failed: the next one needs the server.
afterEach(async () => {
  await server.restart();
  await redis.flush();
});

function stall(): void {
  process.kill(server.pid!, 'SIGSTOP');
  atEnd(() => process.kill(server.pid!, 'SIGCONT'));
}

const FAULTS: Record<string, (cut: Cut) => void | Promise<void>> = {
  'was killed': async (cut) => {
    await server.kill9();
    cut.drop();
  },
  'accepts connections and does not answer': (cut) => {
    stall();
    cut.drop();
  },
  'does not answer on open connections': stall,
};

it.each(
  Object.keys(FAULTS).flatMap((fault) => [
    [fault, 0],
    [fault, 10],
  ]) as [string, number][],
)('stops in time if Redis %s, with %i more queues', async (fault, more) => {
  const cut = await startCut(redis.url);
  const names = Array.from({ length: more }, (_, i) => `more-${i}`);
  const app = await bootQueue(redis, {
    root: { connection: cut.url, shutdown: { timeout: '20s', grace: '5s' } },
    queues: [{ name: 'planned' }, ...names.map((name) => ({ name, limits: { concurrency: 5 } }))],
    imports: [
      QueueMetricsModule.forRoot({ path: false }),
      QueueModule.registerDispatcher({
        name: 'tasks',
        delayedKey: 'delayed',
        readyKey: 'ready',
      }),
    ],
    handlers: { '*': () => 1 },
    providers: [Listening, Planned, ...names.map((name) => processorOf(name, { '*': () => 1 }))],
    watch: false,
  });
  await app.queue.addAndWait('job', null);
  await Promise.all(names.map((name) => app.queueOf(name).add('job', null)));
  await FAULTS[fault]!(cut);
  const { error, ms, starvedMs } = await timed(() => app.close());
  expect(error).toBeUndefined();
  expect(ms - starvedMs).toBeLessThan(STOP_MS);
});
