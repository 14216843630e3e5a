import { describe, expect, it } from 'vitest';
import { ADDED, emptyRow, HOUR_MS, MINUTE_MS, type CountedBy } from '#lib/contract/history.js';
import { QUEUE } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('counters of minutes (%s)', (kind) => {
  const t = useEngine(kind);
  const hourAt = (ago: number) => t.now - ago * HOUR_MS;
  const rowOf = (hour: number, name: string, added: number, minute = 0) => ({
    minute: hour + minute * MINUTE_MS,
    name,
    row: Object.assign(emptyRow(), { [ADDED]: added }),
  });
  type Rows = ReturnType<typeof rowOf>[];
  const countBy = (by: CountedBy, lane: string, seq: number, hour: number, rows: Rows) =>
    t.engine.admin.countMinutes(QUEUE, { by, lane, seq, hour, rows });
  const count = (lane: string, seq: number, hour: number, ...rows: Rows) =>
    countBy('name', lane, seq, hour, rows);
  const readBy = async (by: CountedBy, ...hours: number[]) =>
    (await t.engine.admin.minutes(QUEUE, hours, by))
      .map(({ minute, name, text }) => `${(minute - t.now) / MINUTE_MS} ${name} ${text}`)
      .toSorted();
  const read = (...hours: number[]) => readBy('name', ...hours);

  it('are added up from several processes, by hour, minute and name', async () => {
    const [now, before] = [hourAt(0), hourAt(1)];
    await count('p', 1, now, rowOf(now, 'a', 1), rowOf(now, 'a', 1, 59), rowOf(now, '', 4));
    await count('q', 1, now, rowOf(now, 'a', 10));
    await count('p', 2, before, rowOf(before, 'b', 2, 59));
    expect(await read(now, before)).toEqual(['-1 b 2', '0  4', '0 a 11', '59 a 1']);
    expect(await read(before)).toEqual(['-1 b 2']);
    expect(await read()).toEqual([]);
  });

  it('are not added by a repetition', async () => {
    const now = hourAt(0);
    await count('p', 3, now, rowOf(now, 'a', 1));
    await count('p', 3, now, rowOf(now, 'a', 1));
    await count('p', 2, now, rowOf(now, 'a', 1));
    expect(await read(now)).toEqual(['0 a 1']);
  });

  it('share the empty name beyond the rows of an hour', async () => {
    const now = hourAt(0);
    const rows = Array.from({ length: 12_000 }, (_, i) => rowOf(now, `n${i}`, 1));
    await count('p', 1, now, ...rows);
    await count('p', 2, now, rowOf(now, 'n0', 1), rowOf(now, 'new', 2), rowOf(now, 'newer', 3));
    const all = await read(now);
    expect(all).toHaveLength(12_001);
    expect(all.filter((line) => !line.endsWith(' 1'))).toEqual(['0  5', '0 n0 2']);
  });

  it('of hosts are apart from those of names, also beyond the rows of an hour', async () => {
    const now = hourAt(0);
    const rows = Array.from({ length: 12_000 }, (_, i) => rowOf(now, `h${i}`, 1));
    await countBy('host', 'p', 1, now, rows);
    await count('p', 2, now, rowOf(now, 'a', 1));
    await countBy('host', 'p', 3, now, [rowOf(now, 'h0', 1), rowOf(now, 'new', 2), rowOf(now, 'newer', 3)]);
    await countBy('host', 'p', 3, now, [rowOf(now, 'h0', 1)]);
    expect(await read(now)).toEqual(['0 a 1']);
    expect((await readBy('host', now)).filter((line) => !line.endsWith(' 1'))).toEqual(['0  5', '0 h0 2']);
  });

  it('are gone with the queue', async () => {
    const now = hourAt(0);
    await countBy('host', 'p', 1, now, [rowOf(now, 'h', 1)]);
    await countBy('host', 'p', 2, hourAt(72), [rowOf(hourAt(72), 'h', 1)]);
    await count('p', 1, now, rowOf(now, 'a', 1));
    await count('p', 2, hourAt(72), rowOf(hourAt(72), 'a', 1));
    await t.engine.admin.obliterate(QUEUE, false);
    expect(await read(now, hourAt(72))).toEqual([]);
    expect(await readBy('host', now, hourAt(72))).toEqual([]);
  });
});
