import { describe, expect, it } from 'vitest';
import { encodeBody } from '#lib/job/job-record.js';
import { oldest } from '#lib/engine/scripts/admin.js';
import { dead, job, QUEUE, retried, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const HOUR_MS = 3_600_000;
const SLACK_MS = 60_000;

const ask = () => changingNothing(q, () => q.engine.admin.oldestWaitingMs(QUEUE));
/** A job that was added this long ago, by the clock of Redis. */
const added = async (id: string, agoMs: number, more = {}) => {
  const body = encodeBody('work', (await q.now()) - agoMs, {}, '"data"');
  await q.add({ ...job(id), body, ...more });
};
const expectAge = async (ms: number) => {
  const age = await ask();
  expect(age).toBeGreaterThanOrEqual(ms);
  expect(age).toBeLessThan(ms + SLACK_MS);
};

it('is null if nothing waits', async () => {
  expect(await ask()).toBeNull();
  await added('a', HOUR_MS);
  await q.claim();
  expect(await ask()).toBeNull();
  await added('late', HOUR_MS, { delayMs: 60_000 });
  expect(await ask()).toBeNull();
});

it('is 0 for one that was promoted by hand', async () => {
  const body = encodeBody('work', await q.now(), { delayMs: HOUR_MS }, 'null');
  await q.add({ ...job('a'), body });
  expect(await ask()).toBe(0);
});

it('skips jobs that have run before or were retried by a person, and is null if there are no others', async () => {
  await added('retry', 5 * HOUR_MS);
  await added('revived', 5 * HOUR_MS);
  await q.claim();
  await q.settle(retried('retry'), dead('revived'));
  await q.engine.upkeep.retryDead(QUEUE, { ids: ['revived'] });
  expect(await ask()).toBeNull();
  await added('fresh', HOUR_MS);
  await expectAge(HOUR_MS);
});

it('sees suspects, the first and the last of the priorities, and the oldest of all', async () => {
  await added('plain', 0);
  await added('high', HOUR_MS, { priority: 1 });
  await expectAge(HOUR_MS);
  await added('low', 3 * HOUR_MS, { priority: 2_097_151 });
  await added('low, later', 0, { priority: 2_097_151 });
  await expectAge(3 * HOUR_MS);
  await added('suspect', 4 * HOUR_MS);
  await q.admin.lrem(q.key('wait'), 1, 'suspect');
  await q.admin.rpush(q.key('suspects'), 'suspect');
  await expectAge(4 * HOUR_MS);
});

it('skips bodies that are gone or cannot be read', async () => {
  await added('gone', 5 * HOUR_MS);
  await q.admin.hdel(q.key('jobs'), 'gone');
  await q.add({ ...job('broken'), body: 'no lines' });
  expect(await ask()).toBeNull();
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: oldest.keys,
    except: ['jobsA', 'lines', 'lineStates'],
    async prepare() {
      await added('a', 0);
      return () => q.engine.admin.oldestWaitingMs(QUEUE);
    },
  });
});
