import { expect, it } from 'vitest';
import type { JobCounts } from '#lib/job/job-state.js';
import { DrainedWatch, type DrainedEngine } from '#lib/events/drained.js';
import { atEnd } from '../support/cleanup.js';
import { latch, until } from '../support/wait.js';

const NONE = { waiting: 0, delayed: 0, active: 0, completed: 0, dead: 0, cancelled: 0 };

it('looks again if a job ends or is delayed during a look that still finds it', async () => {
  const answers = [latch<JobCounts>('the first look'), latch<JobCounts>('the second look')];
  let looks = 0;
  const counts = () => answers[looks++]!.promise;
  const engine = { admin: { counts }, now: () => 1_000 } as unknown as DrainedEngine;
  const drained: Date[] = [];
  const watch = new DrainedWatch(engine, 'work', ({ at }) => drained.push(at));
  atEnd(() => watch.stop());
  watch.hear({ type: 'completed', at: new Date(1) });
  await until(() => looks === 1);
  watch.hear({ type: 'removed', at: new Date(2) });
  answers[0]!.open({ ...NONE, waiting: 1 });
  answers[1]!.open(NONE);
  await until(() => drained.length > 0);
  expect(drained).toEqual([new Date(1_000)]);
});
