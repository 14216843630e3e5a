import type { Redis } from 'ioredis';
import { parseInfo } from './redis-info.js';

/** Starts watching; the answer says how many milliseconds the longest command, a script as a whole, has kept the server since. */
export async function watchCalls(control: Redis): Promise<() => Promise<number>> {
  await control.config('SET', 'latency-tracking-info-percentiles', '100');
  // The distributions are kept since the last reset.
  await control.config('RESETSTAT');
  return async () => {
    let longest = 0;
    for (const [name, value] of parseInfo(await control.info('latencystats'))) {
      if (name.startsWith('latency_percentiles_usec_')) {
        longest = Math.max(longest, Number(/p100=([\d.]+)/.exec(value)![1]));
      }
    }
    return longest / 1_000;
  };
}
