import { expect, it } from 'vitest';
import { UnrecoverableError } from '#lib/errors.js';
import { bootQueue, type Handlers } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();

const NOTHING = { processed: 0, failed: 0, dead: 0, cancelled: 0, byName: {} };

it('counts completed, failed, dead and cancelled jobs per day and per job name', async () => {
  let calls = 0;
  const handlers: Handlers = {
    mail: () => undefined,
    flaky: () => {
      calls += 1;
      if (calls < 3) throw new Error('not yet');
    },
    bad: () => {
      throw new UnrecoverableError();
    },
  };
  const { queue, ended } = await bootQueue(redis, { handlers: { ...handlers, '*': () => undefined } });
  expect(await queue.stats()).toMatchObject({ total: NOTHING });
  const jobs = [
    ...(await queue.addBulk(Array.from({ length: 5 }, () => ({ name: 'mail', data: null })))),
    await queue.add('flaky', null, { attempts: 3, backoff: 0 }),
    await queue.add('bad', null),
    await queue.add('__proto__', null, { retention: '1h' }),
  ];
  for (const { id } of jobs) await ended(id);
  const { id } = await queue.add('mail', null, { delay: '1h' });
  await queue.cancel(id);

  const { days, total } = await queue.stats();
  expect(days).toHaveLength(7);
  // Midnight may have passed meanwhile.
  const seen = days.filter(({ processed, cancelled }) => processed + cancelled > 0);
  expect(seen.length).toBeLessThanOrEqual(2);
  for (const { date } of days) expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(total).toMatchObject({ processed: 7, failed: 3, dead: 1, cancelled: 1 });
  expect(new Map(Object.entries(total.byName))).toEqual(
    new Map([
      ['mail', { processed: 5, failed: 0, dead: 0 }],
      ['flaky', { processed: 1, failed: 2, dead: 0 }],
      ['bad', { processed: 0, failed: 1, dead: 1 }],
      ['__proto__', { processed: 1, failed: 0, dead: 0 }],
    ]),
  );
  expect(days.slice(2)).toEqual(days.slice(2).map(({ date }) => ({ date, ...NOTHING })));
  expect((await queue.stats({ days: 90 })).days).toHaveLength(90);
});

it('counts each queue separately, from any process', async () => {
  const { queue, ended } = await bootQueue(redis, { handlers: { mail: () => undefined } });
  const { id } = await queue.add('mail', null);
  await ended(id);
  const other = await bootQueue(redis, {
    queues: [{ name: 'other' }],
    root: { role: 'producer' },
    watch: false,
  });
  expect((await other.queue.stats({ days: 2 })).total).toMatchObject({ processed: 1 });
  expect((await other.queueOf('other').stats({ days: 2 })).total).toEqual(NOTHING);
});
