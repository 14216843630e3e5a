import { GCProfiler, type GCProfilerResult } from 'node:v8';
import { expect, it, vi } from 'vitest';
import { useRedis } from '../support/redis.js';
import { latch } from '../support/wait.js';
import { bootQuiet, payload } from './lab.js';

// What a job leaves behind in Node. Nothing of it may outlive the quick collections: these take as long as there is to be kept,
// and what they keep waits for a full one. No time is in it either.
vi.setConfig({ testTimeout: 120_000 });

const redis = useRedis();
const WARM_UP = 3_000;
const JOBS = 4_000;
/** Those on their way when a collection comes are kept by right, and so is what the test runner has. One object too many is 2,000. */
const MOST_KEPT = 1_000;
const BATCH = 500;
const NOTE = 1_024;

it('keeps nothing of a job that has ended', async () => {
  let handled = latch();
  const { queue } = await bootQuiet(redis, { handlers: { noop: () => handled.open() } });
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

it('keeps nothing of jobs that come and go in batches', async () => {
  const note = 'x'.repeat(NOTE);
  const { queue } = await bootQuiet(redis, { handlers: { noop: () => (left -= 1) === 0 && ended.open() } });
  let left = 0;
  let ended = latch();
  const work = async (jobs: number) => {
    for (let done = 0; done < jobs; done += BATCH) {
      left = BATCH;
      ended = latch();
      await queue.addBulk(Array.from({ length: BATCH }, () => ({ name: 'noop', data: { note } })));
      await ended.promise;
    }
  };
  await work(WARM_UP);
  const profiler = new GCProfiler();
  profiler.start();
  await work(20_000);
  const { collections, bytes } = keptBy(profiler.stop());
  expect(collections).toBeGreaterThan(1);
  // The note alone, kept once, would be more.
  expect(bytes / 20_000).toBeLessThan(NOTE);
});

/** What the quick collections have made old. */
function keptBy({ statistics }: GCProfilerResult) {
  const quick = statistics.filter(({ gcType }) => gcType === 'Scavenge');
  const old = (heap: (typeof quick)[number]['beforeGC']) =>
    heap.heapSpaceStatistics.find(({ spaceName }) => spaceName === 'old_space')!.spaceUsedSize;
  const bytes = quick.reduce((sum, { beforeGC, afterGC }) => sum + old(afterGC) - old(beforeGC), 0);
  return { collections: quick.length, bytes };
}
