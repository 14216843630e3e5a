import { GCProfiler, type GCProfilerResult } from 'node:v8';
import { expect, it, vi } from 'vitest';
import { bootQueue } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch } from '../support/wait.js';
import { payload, QUIET } from './lab.js';

// What a job leaves in Node. None of it may outlive the quick collections: they take longer the more there is to keep,
// and what they keep waits for a full one. No time is measured.
vi.setConfig({ testTimeout: 120_000 });

const redis = useRedis();
const WARM_UP = 3_000;
const JOBS = 8_000;
/**
 * Jobs on their way during a collection are rightly kept, and so are objects of the test runner. One object too many
 * per job would be 2,000.
 */
const MOST_KEPT = 1_000;

it('keeps nothing of a job that has ended', async () => {
  let handled = latch();
  const { queue } = await bootQueue(redis, {
    watch: false,
    root: QUIET,
    handlers: { noop: () => handled.open() },
  });
  const work = async (jobs: number) => {
    for (let i = 0; i < jobs; i++) {
      handled = latch();
      await queue.add('noop', payload());
      await handled.promise;
    }
  };
  await work(WARM_UP);
  const profiler = new GCProfiler();
  profiler.start();
  await work(JOBS);
  const { collections, bytes } = keptBy(profiler.stop());
  expect(collections).toBeGreaterThan(1);
  expect(bytes / JOBS).toBeLessThan(MOST_KEPT);
});

/** The bytes that quick collections have moved to old space. */
function keptBy({ statistics }: GCProfilerResult) {
  const quick = statistics.filter(({ gcType }) => gcType === 'Scavenge');
  const old = (heap: (typeof quick)[number]['beforeGC']) =>
    heap.heapSpaceStatistics.find(({ spaceName }) => spaceName === 'old_space')!.spaceUsedSize;
  const bytes = quick.reduce((sum, { beforeGC, afterGC }) => sum + old(afterGC) - old(beforeGC), 0);
  return { collections: quick.length, bytes };
}
