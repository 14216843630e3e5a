import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Large enough to stand out from all other allocations, small enough to be allocated among the young objects. */
export const LARGE = 100 * 1024;

/**
 * MiB that minor collections leave of what `make` allocates, with one collection after each ten awaited calls. Minor
 * collections free what no old object refers to.
 */
export async function mibLeftOf(calls: number, make: () => unknown): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void;
  // Objects that are created by the first calls do not count.
  for (let n = 0; n < 20; n++) await make();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let n = 1; n <= calls; n++) {
    await make();
    if (n % 10 === 0) collect({ type: 'minor' });
  }
  collect({ type: 'minor' });
  return (process.memoryUsage().heapUsed - before) / 2 ** 20;
}
