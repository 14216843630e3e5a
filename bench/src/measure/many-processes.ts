import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerOpening, WorkerRecord } from '../beside/acts.js';
import { startWorkers } from '../beside/start.js';
import type { Lab } from '../scenario.js';
import { meterRedis, type RedisCost } from './redis-info.js';

/** Per process, so that asking several processes costs as much as asking one. */
const ASK_EVERY_MS = 10;

/** Several processes work off a full queue. Returns what each of them did, and what that cost Redis. */
export async function workTogether(
  lab: Lab,
  count: number,
  opening: Omit<WorkerOpening, 'contender' | 'url'>,
): Promise<{ readonly records: readonly WorkerRecord[]; readonly spent: RedisCost }> {
  // The first process would handle most jobs before the others start, so each holds its jobs until all are ready.
  const workers = await startWorkers(lab, count, opening);
  const redis = await meterRedis(lab.control);
  await Promise.all(workers.map((worker) => worker.ask('go')));

  for (let handled = 0; handled < opening.jobs;) {
    await sleep(ASK_EVERY_MS * count);
    const counts = await Promise.all(workers.map((worker) => worker.ask('handled')));
    handled = counts.reduce((sum, one) => sum + one, 0);
    lab.progress(handled, opening.jobs);
  }
  const records = await Promise.all(workers.map((worker) => worker.ask('record')));
  const spent = await redis();
  await Promise.all(workers.map((worker) => worker.ask('close')));
  await Promise.all(workers.map((worker) => worker.end()));
  return { records, spent };
}
