import { PATIENT } from '../../support/queue-app.js';
import { until } from '../../support/wait.js';

/** More than between two exchanges that follow one upon the other, which renew it too; less than between two beats. */
const LEAP_MS = 100;

/**
 * Resolves once a beat has renewed the lease: the thread that sends it takes its time to start. `leaseMs`: what is left of
 * it; undefined while there is none.
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
