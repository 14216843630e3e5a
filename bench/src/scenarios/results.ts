import { consumedFigures, fillFor, measureConsuming, type Consuming } from '../measure/consuming.js';
import { memoryAlone } from '../measure/memory.js';
import { warmUpFor } from '../measure/produce.js';
import type { Lab, Scenario } from '../scenario.js';

/** With their warm-up fewer than the 1,000 that every contender keeps. */
const FEW = 800;

const keeping: Consuming = {
  concurrency: 100,
  open: { keepResults: true },
  handler: (tally) => (job) => {
    tally.handle(job);
    return { sent: true, n: job.n };
  },
};

export const results: Scenario = {
  name: 'results',
  title: 'consume, handler returns a small object, which is kept, concurrency 100',
  needs: ['results'],
  jobs: (asked) => Math.ceil(asked / 4),
  figures: [
    ...consumedFigures,
    { key: 'bytes', title: 'Redis memory per job kept with its result', unit: 'bytes', better: 'less' },
  ],
  prepare: (lab) => fillFor(lab, keeping),
  async measure(lab) {
    const { figures } = await measureConsuming(lab, keeping);
    return { ...figures, bytes: await bytesPerResult({ ...lab, jobs: FEW }) };
  },
};

/** Growth of memory compared with a run without results, so that event streams and other fixed keys do not count. */
async function bytesPerResult(lab: Lab): Promise<number> {
  const without = await memoryAfter(lab, { ...keeping, open: {} });
  const kept = await memoryAfter(lab, keeping);
  const bytes = (kept - without) / (warmUpFor(lab.jobs) + lab.jobs);
  const least = JSON.stringify({ sent: true, n: 1 }).length;
  if (bytes < least) throw new Error(`${bytes} bytes stay of a job, less than its result is long`);
  return bytes;
}

async function memoryAfter(lab: Lab, how: Consuming): Promise<number> {
  await lab.control.flushall('SYNC');
  await fillFor(lab, how);
  await measureConsuming(lab, how);
  return memoryAlone(lab);
}
