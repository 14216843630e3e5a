import type { QueueEngine } from '#lib/contract/engine.js';
import { PATIENT } from '../../support/queue-app.js';
import { until } from '../../support/wait.js';

/**
 * More than the time between two exchanges in a row, which renew the lease too. Less than the time between two beats.
 */
const LEAP_MS = 100;

/** How long the first lease of this queue still lasts, in ms. Undefined if there is none. */
export async function leaseMs(engine: QueueEngine, queue: string): Promise<number | undefined> {
  return (await engine.overdue(queue, 60_000))[0]?.endsInMs;
}

/**
 * Resolves once the heartbeat thread has renewed the lease. Until the thread is ready, a timer renews leases. On a busy machine that
 * takes a second. The thread then registers the process.
 */
export async function renewed(engine: QueueEngine, queue: string): Promise<void> {
  const isReady = async () => (await engine.processes.list()).records.length > 0;
  await until(isReady, { ...PATIENT, what: 'the heartbeat thread is ready' });
  let last = Infinity;
  const isMore = async () => {
    const left = (await leaseMs(engine, queue)) ?? Infinity;
    const before = last;
    last = left;
    return left > before + LEAP_MS && left !== Infinity;
  };
  await until(isMore, { ...PATIENT, what: 'the lease is renewed' });
}
