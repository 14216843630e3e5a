import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Large enough to be told from everything else that happens meanwhile, small enough to begin among the young objects. */
export const LARGE = 100 * 1024;

/**
 * MiB that quick collections alone leave of what `make` makes, one collection behind each ten calls, each of which is awaited.
 * Quick ones collect whatever no old object leads to, dead or alive.
 */
export async function mibLeftOf(calls: number, make: () => unknown): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void;
  // What is compiled and made at the first calls is not meant.
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
