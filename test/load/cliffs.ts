// How long the scripts hold Redis on very large queues, by the clock of Redis itself (SLOWLOG):
//   npm run test:cliffs -- [--jobs 1000000] [--active 100000]
// Ends with 1 where a script of the hot path has a p99 above the limit.
import { parseArgs } from 'node:util';
import type { EnqueueJob } from '#lib/contract/engine.js';
import { encodeBody } from '#lib/job/job-record.js';
import { completedRun, LOAD_LIMITS, startLoad } from './script-times.js';

const { values } = parseArgs({
  options: { jobs: { type: 'string', default: '1000000' }, active: { type: 'string', default: '100000' } },
});
const JOBS = Number(values.jobs);
const ACTIVE = Number(values.active);
const QUEUE = 'cliffs';
const LEASE_MS = LOAD_LIMITS.leaseMs;
const BATCH = 500;
/** Per measurement. The queue keeps about this size. */
const CALLS = 200;
/** Of the p99, for a machine that does other things too: alone, a batch of 500 took 2.4 ms, an add of 1,000 delayed jobs 9.5 ms. */
const LIMIT_MS = 25;
const LEAST_JOBS = CALLS * BATCH * 2 + ACTIVE;
if (JOBS < LEAST_JOBS)
  throw new Error(
    `--jobs must be at least ${LEAST_JOBS} with --active ${ACTIVE}: the measurements claim as many`,
  );

const { admin, engine, times, stop } = await startLoad('cliffs', LIMIT_MS);

class Worker {
  private seq = 0;
  held: string[] = [];

  constructor(readonly name: string) {}

  /** Settles what it holds, up to a batch, and claims as many. */
  async exchange(want: number, settle = true): Promise<void> {
    const ids = settle ? this.held.splice(0, BATCH) : [];
    const settled = ids.map(completedRun);
    const answer = await engine.exchange(QUEUE, {
      worker: this.name,
      seq: ++this.seq,
      leaseMs: LEASE_MS,
      want,
      maySuspect: true,
      settled,
    });
    if (answer.kind !== 'exchanged') throw new Error(`no exchange was made: ${answer.kind}`);
    this.held.push(...answer.claimed.map(({ id }) => id));
  }
}

try {
  await engine.open();
  await waiting();
  await active();
  await dueAtOnce();
} finally {
  await stop();
}
process.exitCode = times.isSlow ? 1 : 0;

async function add(count: number, more: Partial<EnqueueJob> = {}): Promise<void> {
  const lane = `lane-${Math.random()}`;
  for (let from = 0, seq = 1; from < count; from += 1_000, seq++) {
    const jobs = Array.from({ length: Math.min(1_000, count - from) }, (_, i) => {
      const body = encodeBody('job', Date.now(), {}, JSON.stringify({ to: 'somebody', n: from + i }));
      return { id: `${lane.slice(-8)}-${from + i}`, name: 'job', body, ...more };
    });
    await engine.enqueue(QUEUE, { lane, seq, rememberMs: 10_000, withinMs: 60_000, jobs });
  }
}

async function waiting(): Promise<void> {
  times.head();
  await times.measured(`add 1,000 at a time, up to ${JOBS}`, () => add(JOBS));
  const worker = new Worker('w1');
  await times.measured(`settle and claim ${BATCH} with ${JOBS} waiting`, async () => {
    for (let i = 0; i < CALLS; i++) await worker.exchange(BATCH);
  });
  await times.measured('add one', async () => {
    for (let i = 0; i < CALLS; i++) await add(1);
  });
  await worker.exchange(0);
}

async function active(): Promise<void> {
  const workers = Array.from({ length: Math.ceil(ACTIVE / 5_000) }, (_, i) => new Worker(`a${i}`));
  await times.measured(`claim ${BATCH} up to ${ACTIVE} active`, async () => {
    for (const worker of workers) for (let i = 0; i < 10; i++) await worker.exchange(BATCH, false);
  });
  await times.measured(`settle and claim ${BATCH} with ${ACTIVE} active`, async () => {
    for (let i = 0; i < CALLS; i++) await workers[i % workers.length]!.exchange(BATCH);
  });
  await times.measured(`counts, beat and get with ${ACTIVE} active`, async () => {
    for (let i = 0; i < CALLS; i++) {
      const worker = workers[i % workers.length]!;
      await engine.admin.counts(QUEUE);
      await engine.beat(QUEUE, worker.name, LEASE_MS);
      await engine.admin.get(QUEUE, worker.held[0]!);
    }
  });
  const [dead] = workers;
  await times.measured('take 5,000 back from a dead worker', async () => {
    // A doubt older than two leases would begin anew.
    const lease = Date.now() - 1.5 * LEASE_MS;
    await admin.zadd('{cliffs:cliffs}:workers', lease, dead!.name);
    await admin.hset(`{cliffs:cliffs}:worker:${dead!.name}`, 'doubt', `${lease} ${lease + 1}`);
    const call = { worker: dead!.name, beatMs: LEASE_MS / 4, leaseMs: LEASE_MS, maxStalls: 5 };
    for (let more = true; more;) {
      const answer = await engine.recover(QUEUE, call);
      if (answer.kind !== 'recovered') throw new Error(`no job was taken back: ${answer.kind}`);
      more = answer.more;
    }
  });
  await engine.admin.obliterate(QUEUE, true);
}

async function dueAtOnce(): Promise<void> {
  const dueAt = Date.now() + 1_000;
  await times.measured(`add 1,000 delayed at a time, up to ${JOBS}`, () => add(JOBS, { dueAt }));
  const worker = new Worker('d1');
  await times.measured(`${JOBS} delayed, all due at once: promote, claim ${BATCH}`, async () => {
    for (let i = 0; i < CALLS * 2; i++) await worker.exchange(BATCH);
  });
}
