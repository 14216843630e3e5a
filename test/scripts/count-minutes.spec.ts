import { expect, it } from 'vitest';
import { countMinutes } from '#lib/engine/scripts/admin.js';
import { addStored, COMPLETED, emptyRow, FAILED, MINUTE_MS, type CounterRow } from '#lib/contract/history.js';
import { HOUR as hour, QUEUE, useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const row = (counts: Record<number, number>): CounterRow => Object.assign(emptyRow(), counts);
const one = (name: string, completed: number, minute = 3) => ({
  minute: hour + minute * MINUTE_MS,
  name,
  row: row({ [COMPLETED]: completed }),
});
const count = (seq: number, ...rows: ReturnType<typeof one>[]) =>
  q.engine.admin.countMinutes(QUEUE, { by: 'name', lane: 'p', seq, hour, rows });
const read = async () => {
  const rows = await q.engine.admin.minutes(QUEUE, [hour], 'name');
  return rows.map(({ text, ...rest }) => {
    const sum = emptyRow();
    addStored(text, [sum]);
    return { ...rest, row: sum };
  });
};

it('adds value by value, and keeps the hour for 72 hours after its end', async () => {
  await count(1, one('a', 2), one('b', 5));
  await count(2, { ...one('a', 40), row: row({ [COMPLETED]: 40, [FAILED]: 7 }) }, one('a', 1, 59));
  const rows = await read();
  expect(rows).toHaveLength(3);
  expect(rows).toContainEqual({ ...one('a', 0), row: row({ [COMPLETED]: 42, [FAILED]: 7 }) });
  expect(rows).toContainEqual(one('b', 5));
  expect(rows).toContainEqual(one('a', 1, 59));
  const ttl = await q.admin.ttl(q.keys.minutes(hour, 'name'));
  expect(ttl).toBeGreaterThan(73 * 3600 - 60);
  expect(ttl).toBeLessThanOrEqual(73 * 3600);
});

it('counts a repeated call once, also after a later call', async () => {
  await count(1, one('a', 2));
  await count(2, one('a', 3));
  await changingNothing(q, async () => {
    await count(2, one('a', 3));
    await count(1, one('a', 2));
  });
  expect(await read()).toEqual([one('a', 5)]);
});

it('takes names that look like anything', async () => {
  await count(1, one('__proto__', 1), one('', 2), one('3:a\nb', 3), one('~p', 4));
  expect((await read()).map(({ name, row: counts }) => [name, counts[COMPLETED]])).toEqual(
    expect.arrayContaining([
      ['__proto__', 1],
      ['', 2],
      ['3:a\nb', 3],
      ['~p', 4],
    ]),
  );
});

it('puts names beyond the limit of an hour under the empty name', async () => {
  const full = Array.from({ length: 12_000 }, (_, i) => [`0:n${i}`, '']).flat();
  await q.admin.hset(q.keys.minutes(hour, 'name'), ...full);
  await count(1, one('n1', 1, 0), one('new', 2), one('newer', 3));
  const rows = (await read()).filter(({ row: counts }) => counts[COMPLETED]! > 0);
  expect(rows).toHaveLength(2);
  expect(rows).toContainEqual(one('n1', 1, 0));
  expect(rows).toContainEqual(one('', 5));
});

it('starts a row again that another program has overwritten, and skips fields of other programs', async () => {
  await q.admin.hset(q.keys.minutes(hour, 'name'), '3:a', 'nan,x,-4', 'other', '1', '99:a', '1');
  await count(1, one('a', 2));
  expect(await read()).toEqual([one('a', 2)]);
});

itRefusesWrongTypes(q, {
  keys: countMinutes.keys,
  prepare: async () => () => count(1, one('a', 1)),
});
