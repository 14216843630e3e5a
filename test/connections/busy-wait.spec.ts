import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import { expect, it } from 'vitest';
import { bootQueue } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();
const turns = (): number => performance.nodeTiming.uvMetricsInfo.loopCount;

it.skipIf(availableParallelism() < 2)('keeps the event loop turning between adds in turn', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  let [before, adds, added] = [turns(), 0, 0];
  // Who sleeps until the answer takes two turns. Code that is new takes longer than adds in turn may be apart, so it goes on.
  do {
    if (adds === 100) [before, adds] = [turns(), 0];
    await queue.add('job', adds);
    adds++;
    added++;
  } while (adds < 100 || turns() - before < 5 * adds);
  expect((await queue.counts()).waiting).toBe(added);
});
