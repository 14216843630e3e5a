import { expect, it } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import type { DueAnswer, FireAnswer, StoredSchedule } from '#lib/contract/schedule-verbs.js';
import { Log } from '#lib/contract/log.js';
import { makeSchedule } from '#lib/schedule/record.js';
import { QueueScheduleTimer } from '#lib/schedule/schedule-timer.js';

it('fires the first schedules before it has planned the last ones', async () => {
  const rule = { every: '1s', missed: 'all', maxMissed: 100 };
  const { record } = makeSchedule(
    rule,
    { name: 'job' },
    { maxPayloadBytes: 1_000, payloads: 'strict' },
    'up()',
  );
  let planned = 0;
  const stored = (id: string) =>
    Object.defineProperty({ id, revision: 1, nextAt: 1_000 } as unknown as StoredSchedule, 'record', {
      get: () => {
        planned += 1;
        return record;
      },
    });
  const due = Array.from({ length: 20 }, (_, i) => stored(`s${i}`));
  const plannedAtFire: number[] = [];
  const fired: string[] = [];
  const schedules = {
    due: async (): Promise<DueAnswer> => ({ now: 1_000_000, due, nextInMs: null }),
    fire: async (_: string, calls: readonly { readonly id: string }[]): Promise<FireAnswer> => {
      plannedAtFire.push(planned);
      fired.push(...calls.map(({ id }) => id));
      return { made: calls.map(() => 100), due: 0, nextInMs: null };
    },
  };
  const engine = { schedules } as unknown as QueueEngine;
  await new QueueScheduleTimer(engine, 'work', new Log('test')).fireAll();
  expect(fired).toEqual(due.map(({ id }) => id));
  expect(plannedAtFire[0]).toBeLessThan(planned / 2);
});
