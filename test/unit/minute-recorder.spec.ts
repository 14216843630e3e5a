import { expect, it } from 'vitest';
import type { MinutesCall } from '#lib/contract/history.js';
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
