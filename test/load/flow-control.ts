// Queues with very many groups: how long scripts hold Redis (SLOWLOG), the memory of a waiting job, and whether turns are fair.
//   npm run test:flow-control -- [--groups 1000000] [--tenant 1000000]
// Ends with 1 if a script has a p99 above the limit, or if a turn is missed.
import { parseArgs } from 'node:util';
import { encodeBody } from '#lib/job/job-record.js';
import { completedRun, LOAD_LIMITS, startLoad } from './script-times.js';

const { values } = parseArgs({
  options: {
    groups: { type: 'string', default: '1000000' },
    tenant: { type: 'string', default: '1000000' },
  },
});
const GROUPS = Number(values.groups);
const TENANT = Number(values.tenant);
const LEASE_MS = LOAD_LIMITS.leaseMs;
const BATCH = 100;
const CALLS = 200;
/** Limit of the p99. It leaves room for a machine that does other things too. */
const LIMIT_MS = 25;

const { admin, engine, times, stop } = await startLoad('flow', LIMIT_MS);

class Worker {
  private seq = 0;
  private held: string[] = [];

  constructor(readonly queue: string) {}

  /** Settles what it holds and claims as many jobs. Returns the groups that were served. */
  async exchange(want: number): Promise<readonly string[]> {
    const settled = this.held.map(completedRun);
    const answer = await engine.exchange(this.queue, {
      worker: 'w1',
      seq: ++this.seq,
      leaseMs: LEASE_MS,
      want,
      maySuspect: true,
      settled,
    });
    if (answer.kind !== 'exchanged') throw new Error(`no exchange was made: ${answer.kind}`);
    this.held = answer.claimed.map(({ id }) => id);
    return this.held.map((id) => id.slice(0, id.indexOf('.')));
  }
}

let isUnfair = false;
let lanes = 0;
try {
  await engine.open();
  await manyGroups();
  await oneLargeTenant();
} finally {
  await stop();
}
process.exitCode = times.isSlow || isUnfair ? 1 : 0;

/** Ids begin with the group. */
async function add(queue: string, count: number, groupOf: (i: number) => string): Promise<void> {
  const lane = String(++lanes);
  for (let from = 0, seq = 1; from < count; from += BATCH, seq++) {
    const jobs = Array.from({ length: Math.min(BATCH, count - from) }, (_, i) => {
      const group = groupOf(from + i);
      const body = encodeBody('job', Date.now(), { group }, '{"n":1}');
      return { id: `${group}.${lane}-${from + i}`, name: 'job', body, group };
    });
    await engine.enqueue(queue, { lane, seq, rememberMs: 10_000, withinMs: 60_000, jobs });
  }
}

async function usedBytes(): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await admin.info('memory'))![1]);
}

async function manyGroups(): Promise<void> {
  const queue = 'many';
  const before = await usedBytes();
  times.head();
  await times.measured(`add ${BATCH} at a time, up to ${GROUPS} groups`, () =>
    add(queue, GROUPS, (i) => `g${i}`),
  );
  const own = (await usedBytes()) - before;
  console.log(`memory of a waiting job that is alone in its group: ${Math.round(own / GROUPS)} B`);
  await add(queue, GROUPS, (i) => `g${i}`);
  const further = (await usedBytes()) - before - own;
  console.log(`memory of a further job in a group: ${Math.round(further / GROUPS)} B`);
  const worker = new Worker(queue);
  await times.measured(`settle and claim ${BATCH} with ${GROUPS} groups waiting`, async () => {
    for (let i = 0; i < CALLS; i++) await worker.exchange(BATCH);
  });
  await times.measured('settle and claim one', async () => {
    for (let i = 0; i < CALLS; i++) await worker.exchange(1);
  });
  await times.measured('counts', async () => {
    for (let i = 0; i < CALLS; i++) await engine.admin.counts(queue);
  });
  await times.measured('100 pages of the list of groups', async () => {
    let cursor: string | null = '0';
    for (let i = 0; i < 100; i++) cursor = (await engine.limits.groups(queue, cursor ?? '0', 100)).next;
  });
  await times.measured('obliterate', () => engine.admin.obliterate(queue, true));
}

async function oneLargeTenant(): Promise<void> {
  const queue = 'tenants';
  await add(queue, TENANT, () => 'large');
  await add(queue, 9_990, (i) => `small${i % 999}`);
  const worker = new Worker(queue);
  const served = new Map<string, number>();
  // While the small tenants have jobs, all 1,000 are served equally.
  const claim = async () => {
    for (const group of await worker.exchange(BATCH)) served.set(group, (served.get(group) ?? 0) + 1);
  };
  let widest = 0;
  await times.measured(`claim ${BATCH}, one tenant of 1,000 with ${TENANT} jobs`, async () => {
    for (let i = 1; i <= 95; i++) {
      await claim();
      const counts = [...served.values()];
      const least = served.size === 1_000 ? Math.min(...counts) : 0;
      widest = Math.max(widest, Math.max(...counts) - least);
      if (i === 10) {
        console.log(`tenants served by the first 1,000 claimed jobs: ${served.size} of 1,000`);
        isUnfair ||= served.size < 1_000;
      }
    }
  });
  console.log(`largest difference of turns at any time: ${widest}`);
  isUnfair ||= widest > 1;
  await engine.admin.obliterate(queue, true);
}
