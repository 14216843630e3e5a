import { expect, it } from 'vitest';
import { freeKeys } from '#lib/engine/scripts/upkeep.js';
import { encodeBody } from '#lib/job/job-record.js';
import { completed, job, useQueue } from './support.js';
import { itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();
const ID = '0mwtqbbga5wm6p0000A';
const NEXT = '0mwtqbbga5wm6p0001A';
const FAR = 8_640_000_000_000_000;
const run = (cursor: string, ...digests: string[]) =>
  q.engine['store'].run(freeKeys, q.keys.fixed, { cursor }, { digests });

/** One job runs, and one waits for its end. */
async function running(): Promise<void> {
  const body = encodeBody('work', 0, { digest: 'D' }, '1');
  await q.hold(job(ID, { body }));
  await q.add(job(NEXT, { body, dueAt: FAR }));
  await q.admin.hset(q.key('unique'), 'D', `${ID}\n0\n1\n${NEXT}`);
}

it('moves the job that waits to the line once the holder has ended, and rings', async () => {
  await running();
  expect(await run('', 'D')).toEqual({ cursor: '0', changed: 0 });
  await q.settle(completed(ID));
  // The delayed job rang twice.
  await q.admin.del(q.key('doorbell'));
  expect(await run('', 'D')).toEqual({ cursor: '0', changed: 1 });
  expect(await q.list('wait')).toEqual([NEXT]);
  expect(await q.zset('delayed')).toEqual([]);
  expect((await q.hash('unique'))['D']).toMatch(new RegExp(`^${NEXT}\n0\n\\d+\n$`));
  expect(await q.wasRung()).toBe(true);
});

it('drops rows of jobs that are gone, and those that cannot be read, but none whose time is not over', async () => {
  const later = (await q.now()) + 60_000;
  await q.admin.hset(q.key('unique'), { gone: `x\n0\n1\n`, timed: `x\n${later}\n1\n`, broken: 'nonsense' });
  expect(await run('0')).toEqual({ cursor: '0', changed: 2 });
  expect(Object.keys(await q.hash('unique'))).toEqual(['timed']);
});

it('also moves a waiting job if it is unknown for which job it waits', async () => {
  await running();
  await q.admin.hdel(q.key('unique'), 'D');
  expect(await run('0')).toEqual({ cursor: '0', changed: 1 });
  expect(await q.list('wait')).toEqual([NEXT]);
});

it('goes through many keys in steps', async () => {
  const rows = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`d${i}`, 'x\n0\n1\n']));
  await q.admin.hset(q.key('unique'), rows);
  let changed = 0;
  for (let cursor = '0'; cursor !== '';) {
    const step = await run(cursor);
    changed += step.changed;
    expect(step.changed).toBeLessThan(500);
    cursor = step.cursor === '0' ? '' : step.cursor;
  }
  expect(changed).toBe(1_000);
});

itRefusesWrongTypes(q, {
  keys: freeKeys.keys,
  prepare: async () => {
    await q.add('a');
    return () => run('', 'D');
  },
});
