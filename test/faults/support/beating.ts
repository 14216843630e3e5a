import type { QueueEngine } from '#lib/contract/engine.js';
import { PATIENT } from '../../support/queue-app.js';
import { until } from '../../support/wait.js';

/**
 * More than the time between two exchanges in a row, which renew the lease too. Less than the time between two beats.
 */
const LEAP_MS = 100;

/**
 * Resolves once the thread has renewed the lease. Until it is ready, which takes a second on a busy machine, a timer renews leases;
 * the thread then registers the process. `leaseMs` returns what is left of the lease, or undefined if there is none.
 */
export async function renewed(
  { processes }: Pick<QueueEngine, 'processes'>,
  leaseMs: () => Promise<number | undefined>,
): Promise<void> {
  const isReady = async () => (await processes.list()).records.length > 0;
  await until(isReady, { ...PATIENT, what: 'the heartbeat thread is ready' });
  let last = Infinity;
  const isMore = async () => {
    const left = (await leaseMs()) ?? Infinity;
    const before = last;
    last = left;
    return left > before + LEAP_MS && left !== Infinity;
  };
  await until(isMore, { ...PATIENT, what: 'the lease is renewed' });
}
