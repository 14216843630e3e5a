import { hostname } from 'node:os';
import { expect, it } from 'vitest';
import {
  COMPLETED,
  DEAD,
  emptyRow,
  FAILED,
  fineClassOf,
  HOUR_MS,
  MINUTE_MS,
  RUN_CLASSES,
  RUN_SUM,
  type MinutesCall,
} from '#lib/contract/history.js';
import { RedisRefusedError } from '#lib/errors.js';
import { MinuteRecorder } from '#lib/history/minute-recorder.js';

it.each(['OOM', 'READONLY'])(
  'writes the counters later, and once, if Redis refuses with %s',
  async (reply) => {
    const written: MinutesCall[] = [];
    let isRefusing = true;
    const countMinutes = async (_: string, call: MinutesCall) => {
      if (isRefusing) throw new RedisRefusedError('count-minutes', reply, `${reply} not now`);
      written.push(call);
    };
    const recorder = new MinuteRecorder({ now: () => 60_000, admin: { countMinutes } } as never);
    recorder.added('work', ['a', 'a']);
    await recorder.write();
    recorder.added('work', ['a']);
    await recorder.write();
    isRefusing = false;
    await recorder.write();
    await recorder.write();
    recorder.stop();
    const added = written.flatMap(({ rows }) =>
      rows.map(({ row }) => row.reduce((sum, count) => sum + count, 0)),
    );
    expect(added.reduce((sum, count) => sum + count, 0)).toBe(3);
    expect(new Set(written.map(({ seq }) => seq)).size).toBe(written.length);
  },
);

it('sums the runs of a minute for the host; jobs that were added, or whose workers were lost, are of no host', async () => {
  const calls: MinutesCall[] = [];
  const countMinutes = async (_: string, call: MinutesCall) => void calls.push(call);
  const now = 2 * HOUR_MS - MINUTE_MS;
  const recorder = new MinuteRecorder({ now: () => now, admin: { countMinutes } } as never);
  const ended = (name: string, outcome: object, at: number) =>
    recorder.ended('work', name, { outcome, durationUs: 3_000, firstRunnableAt: at - 10 } as never, at);
  recorder.added('work', ['a']);
  recorder.stalled('work', 5, 2);
  await recorder.write();
  expect(calls.map(({ by }) => by)).toEqual(['name']);
  recorder.added('work', ['a', 'b']);
  recorder.stalled('work', 5, 2);
  ended('a', { kind: 'completed' }, now);
  ended('b', { kind: 'completed' }, now);
  ended('b', { kind: 'dead', counted: true }, now + 5);
  ended('b', { kind: 'completed' }, now + MINUTE_MS);
  await recorder.write();
  recorder.stop();
  const rowOf = (minute: number, counts: Record<number, number>) => ({
    minute,
    name: hostname(),
    row: Object.assign(emptyRow(), counts),
  });
  const [first, second] = calls.filter(({ by }) => by === 'host');
  const counts = { [COMPLETED]: 2, [FAILED]: 1, [DEAD]: 1, [RUN_SUM]: 9, [RUN_CLASSES + fineClassOf(3)]: 3 };
  expect(first).toMatchObject({ hour: HOUR_MS, rows: [rowOf(now, counts)] });
  const last = { [COMPLETED]: 1, [RUN_SUM]: 3, [RUN_CLASSES + fineClassOf(3)]: 1 };
  expect(second).toMatchObject({ hour: 2 * HOUR_MS, rows: [rowOf(now + MINUTE_MS, last)] });
  const dead = calls.flatMap(({ by, rows }) => (by === 'name' ? rows.map(({ row }) => row[DEAD]!) : []));
  expect(dead.reduce((sum, one) => sum + one)).toBe(5);
  expect(calls.map(({ seq }) => seq)).toEqual(calls.map((_, i) => i + 1));
});
