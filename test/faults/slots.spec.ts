import { expect, it } from 'vitest';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { countsOf } from '../support/queue-states.js';

const redis = useRedis();
const CONCURRENCY = 5;

it('has all its slots after a hundred handlers that never returned, and ignores what they do later', async () => {
  const late = latch('the end of all that hangs');
  let running = 0;
  let most = 0;
  const app = await bootQueue(redis, {
    concurrency: CONCURRENCY,
    queue: { defaults: { attempts: 2, backoff: 0, retention: '1h' } },
    handlers: {
      hangs: () => late.promise,
      meets: async () => {
        running += 1;
        most = Math.max(most, running);
        // Goes on when all slots are taken at once. It would wait for ever if one were missing.
        await until(() => most === CONCURRENCY, PATIENT);
        running -= 1;
      },
    },
  });
  const hanging = Array.from({ length: 50 }, (_, i) => ({
    name: 'hangs',
    data: i,
    options: { id: `hangs-${i}`, timeout: 20 },
  }));
  await app.queue.addBulk(hanging);
  for (const { options } of hanging) expect((await app.ended(options.id)).type).toBe('dead');
  const meeting = Array.from({ length: CONCURRENCY }, (_, i) => ({
    name: 'meets',
    data: i,
    options: { id: `meets-${i}` },
  }));
  await app.queue.addBulk(meeting);
  for (const { options } of meeting) expect((await app.ended(options.id)).type).toBe('completed');
  late.open();
  await app.logs.complaint(/after its run was over/);
  expect(await app.queue.counts()).toEqual(countsOf({ completed: CONCURRENCY, dead: 50 }));
});
