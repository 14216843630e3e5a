import { Ledger } from '../faults/support/ledger.js';
import { collect, until } from '../support/wait.js';
import { emptied, end, secondsSince, type Lab } from './lab.js';
import type { Trial } from './trial.js';

const JOBS = 20;
const BLOCK_MS = 50_000;
/**
 * The defaults of `lease`: how long a handler may block, how long a silent worker is trusted, and how often it sends
 * a beat.
 */
const MAX_BLOCK_S = 60;
const LEASE_S = 8;
const BEAT_S = 2;

/** A worker whose handler blocks the event loop is not taken for dead, unless it blocks too long. */
export const block: Trial = {
  name: 'block',
  what: `a handler blocks the event loop for ${BLOCK_MS / 1000} s beside ${JOBS - 1} other jobs, and one for ever`,
  times: 1,
  run: async (lab) => void (await Promise.all([forAWhile(lab), forEver(lab)])),
};

async function forAWhile(lab: Lab): Promise<void> {
  const store = await lab.store();
  const { queue: handle, events } = await lab.producer(store, 'work');
  const queue = handle('work');
  const stalled = collect(events.ofType('work', 'stalled'));
  await events.ready('work');
  const ledger = new Ledger();
  const blocked = await lab.worker(store, { concurrency: JOBS, ledger: ledger.file() });
  const others = Array.from({ length: JOBS - 1 }, () => ({ name: 'sleep', data: BLOCK_MS }));
  await queue.addBulk(others);
  await blocked.take(JOBS - 1, 'started');
  await queue.add('block', BLOCK_MS);
  await blocked.take(JOBS, 'started');
  const watcher = await lab.worker(store, { concurrency: JOBS, ledger: ledger.file() });
  await until(() => ledger.lines('E').length >= JOBS, { timeout: 2 * BLOCK_MS, what: 'the handlers end' });
  await emptied(queue);
  const again = [...ledger.times('S').values()].filter((times) => times > 1).length;
  lab.judge({ what: `jobs run twice, of ${JOBS} in a blocked process`, value: again, equals: 0 });
  lab.judge({ what: 'false recoveries', value: stalled.values.length, equals: 0 });
  await end(blocked, watcher);
}

async function forEver(lab: Lab): Promise<void> {
  const store = await lab.store();
  const queue = (await lab.producer(store, 'work')).queue('work');
  // With no stall allowed the recovery makes the job dead, and it does not block the next worker too.
  const root = { lease: { maxStalls: 0 } };
  const stuck = await lab.worker(store, { concurrency: 1, root });
  const { id } = await queue.add('stuck', null);
  const { at: since } = await stuck.first('started');
  const heir = await lab.worker(store, { concurrency: 1, root });
  const isDead = async () => (await queue.get(id))?.state === 'dead';
  await until(isDead, { timeout: 120_000, what: 'the job of the stuck worker is recovered' });
  lab.judge({
    what: 'a handler that never returns: recovered after maxBlock and the lease',
    value: secondsSince(since),
    unit: 's',
    atLeast: MAX_BLOCK_S,
    atMost: MAX_BLOCK_S + LEASE_S + BEAT_S,
  });
  await end(stuck, heir);
}
