import { PATIENT } from '../../support/queue-app.js';
import { until } from '../../support/wait.js';

/**
 * More than the time between two exchanges in a row, which renew the lease too. Less than the time between two beats.
 */
const LEAP_MS = 100;

/**
 * Resolves once a beat has renewed the lease: the thread that sends it takes some time to start. `leaseMs` returns
 * what is left of the lease, or undefined if there is none.
 */
export async function renewed(leaseMs: () => Promise<number | undefined>): Promise<void> {
  let last = Infinity;
  const isMore = async () => {
    const left = (await leaseMs()) ?? Infinity;
    const before = last;
    last = left;
    return left > before + LEAP_MS && left !== Infinity;
  };
  await until(isMore, { ...PATIENT, what: 'the lease is renewed' });
}
