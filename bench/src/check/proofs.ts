import { isDeepStrictEqual } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { startRedis } from '../../../tools/redis.mjs';
import { payload, type OpenOptions, type Payload, type Session, type Work } from '../contender.js';
import { settled } from '../measure/wait.js';
import { windowsOf } from '../measure/windows.js';
import { QUEUE } from '../scenario.js';
import { Helper } from './helper.js';
import type { Proof, Stand } from './proof.js';
import { Sightings } from './sightings.js';

const CONCURRENCY = 10;

/** A short lease, for contenders that have one, so that a killed worker is noticed soon. */
const LEASE_MS = 2_000;

/** Timers may fire up to a millisecond early, and clocks are read in whole ones. */
const EARLY_MS = 3;

function open({ contender, url }: Stand, more: Partial<OpenOptions> = {}): Promise<Session> {
  return contender.open({ url, queues: [QUEUE], ...more });
}

function work(handle: Work['handle']): { work: Work } {
  return { work: { concurrency: CONCURRENCY, handle } };
}

/** A worker that only records its jobs. */
function openSeeing(stand: Stand, seen: Sightings): Promise<Session> {
  return open(
    stand,
    work((data) => seen.add(data)),
  );
}

/** Waits until all jobs have run and are acknowledged, and closes. Rejects unless each of them ran once. */
async function allRunOnce(session: Session, seen: Sightings, jobs: number): Promise<void> {
  await seen.until('all jobs run', () => seen.jobs === jobs);
  await settled(session);
  await session.close();
  seen.expectEach(jobs, 1);
}

function range(from: number, count: number): Payload[] {
  return Array.from({ length: count }, (_, i) => payload(from + i));
}

const once: Proof = {
  name: 'once',
  title: 'each job runs once, added singly or in bulk',
  async prove(stand) {
    const seen = new Sightings();
    const session = await openSeeing(stand, seen);
    await Promise.all(range(0, 100).map((job) => session.add(QUEUE, job)));
    await session.addBulk(QUEUE, range(100, 1_000));
    await seen.until('1,100 jobs run', () => seen.jobs === 1_100);
    await settled(session);
    await session.close();
    seen.expectEach(1_100, 1);
  },
};

const removed: Proof = {
  name: 'removed',
  title: 'completed jobs leave nothing in Redis',
  async prove(stand) {
    const seen = new Sightings();
    const session = await openSeeing(stand, seen);
    const round = async (from: number): Promise<number> => {
      await session.addBulk(QUEUE, range(from, 1_000));
      await seen.until('the jobs run', () => seen.jobs === from + 1_000);
      await settled(session);
      return elements(stand.control);
    };
    // The first jobs create the fixed keys of a queue.
    const fixed = await round(0);
    const left = (await round(1_000)) - fixed;
    await session.close();
    if (left > 20) throw new Error(`1,000 completed jobs left ${left} more elements in its keys`);
  },
};

const acknowledged: Proof = {
  name: 'acknowledged',
  title: 'jobs of a worker that is killed run again',
  needs: 'acknowledged',
  async prove(stand) {
    const seen = new Sightings();
    const producer = await open(stand, { leaseMs: LEASE_MS });
    const doomed = await Helper.start(
      stand,
      { concurrency: CONCURRENCY, leaseMs: LEASE_MS, does: 'hang' },
      (data) => seen.add(data),
    );
    await producer.addBulk(QUEUE, range(0, CONCURRENCY));
    await seen.until('the worker holds its jobs', () => seen.jobs === CONCURRENCY);
    await doomed.kill();

    const again = new Sightings();
    const heir = await open(stand, { leaseMs: LEASE_MS, ...work((data) => again.add(data)) });
    await again.until('they run again', () => again.jobs === CONCURRENCY, 40_000);
    await settled(heir);
    await heir.close();
    await producer.close();
  },
};

const retries: Proof = {
  name: 'retries',
  title: 'a job that throws runs again, later, and not beyond its attempts',
  needs: 'retries',
  async prove(stand) {
    const delayMs = 1_500;
    const hopeless = 5;
    const seen = new Sightings();
    const session = await open(stand, {
      retry: { attempts: 3, backoff: 'fixed', delayMs },
      ...work((data) => {
        seen.add(data);
        if (data.n === hopeless || seen.of(data.n).length === 1) throw new Error('as planned');
      }),
    });
    await session.addBulk(QUEUE, range(0, 6));
    await seen.until('each job runs again', () => seen.all.length >= 5 * 2 + 3);
    await settled(session);
    await session.close();
    // Some have a jitter of a fifth.
    const least = delayMs * 0.8 - EARLY_MS - (stand.contender.retriesEarlyMs ?? 0);
    for (let n = 0; n < 6; n++) {
      const runs = seen.of(n);
      const expected = n === hopeless ? 3 : 2;
      if (runs.length !== expected)
        throw new Error(`job ${n} ran ${runs.length} times instead of ${expected}`);
      const gap = runs[1]!.at - runs[0]!.at;
      if (gap < least) throw new Error(`it ran again after ${gap} ms instead of ${delayMs}`);
    }
  },
};

const delays: Proof = {
  name: 'delays',
  title: 'a delayed job does not start before its time, nor keeps others waiting',
  needs: 'delays',
  async prove(stand) {
    const delayMs = 1_000;
    const seen = new Sightings();
    const session = await openSeeing(stand, seen);
    const calledAt = performance.now();
    await session.add(QUEUE, payload(0), { delayMs });
    await session.addBulk(QUEUE, range(1, 20), { delayMs });
    await session.addBulk(QUEUE, range(21, 20));
    await allRunOnce(session, seen, 41);
    for (const { n, at } of seen.all) {
      const after = at - calledAt;
      if (n <= 20 && after < delayMs - EARLY_MS) throw new Error(`job ${n} started after ${after} ms`);
      if (n > 20 && after > delayMs) throw new Error(`job ${n} had no delay and started after ${after} ms`);
    }
  },
};

const schedules: Proof = {
  name: 'schedules',
  title: 'a schedule makes jobs, once for two processes that both ask for it',
  needs: 'schedules',
  async prove(stand) {
    const everyMs = 1_000;
    const seen = new Sightings();
    const sessions = [await openSeeing(stand, seen), await openSeeing(stand, seen)];
    const askedAt = performance.now();
    for (const session of sessions) await session.schedule!(QUEUE, 'clock', everyMs, payload(7));
    const enough = 6;
    await seen.until(`${enough} jobs are made`, () => seen.of(7).length >= enough, 30_000);
    await Promise.all(sessions.map((session) => session.close()));
    // The first run may come at once, and the second at a round time instead of an interval later.
    const due = Math.floor((performance.now() - askedAt) / everyMs) + 2;
    if (seen.all.length > due) throw new Error(`${seen.all.length} jobs were made where ${due} were due`);
  },
};

const results: Proof = {
  name: 'results',
  title: 'the result of a job is kept where it is asked for',
  needs: 'results',
  async prove(stand) {
    const session = await open(stand, { keepResults: true, ...work(({ n }) => ({ twice: n * 2 })) });
    const added = await session.add(QUEUE, payload(21));
    await settled(session);
    const kept = await session.resultOf!(QUEUE, added);
    await session.close();
    if (!isDeepStrictEqual(kept, { twice: 42 })) throw new Error(`what is kept is ${JSON.stringify(kept)}`);
  },
};

const events: Proof = {
  name: 'events',
  title: 'another process hears of every completed job',
  needs: 'events',
  async prove(stand) {
    const heard = new Sightings();
    const watcher = await open(stand, { watch: () => heard.add({ n: 0 }) });
    await watcher.addBulk(QUEUE, range(0, 500));
    const worker = await Helper.start(stand, { concurrency: CONCURRENCY, does: 'finish' });
    await heard.until('500 jobs are heard of', () => heard.all.length >= 500);
    await settled(watcher);
    await watcher.close();
    await worker.kill();
    if (heard.all.length > 500) throw new Error(`${heard.all.length} jobs were heard of where 500 ran`);
  },
};

const replicas: Proof = {
  name: 'replicas',
  title: 'an add does not resolve before a replica has the job',
  needs: 'replicas',
  async prove(stand) {
    const session = await open(stand, { durability: 'replicated' });
    const alone = session.add(QUEUE, payload(0)).then(
      () => 'resolved',
      () => 'rejected',
    );
    if ((await Promise.race([alone, sleep(500, 'waiting')])) === 'resolved')
      throw new Error('it resolved without a replica');
    const { hostname, port } = new URL(stand.url);
    const replica = await startRedis({ private: true, args: ['--replicaof', `${hostname} ${port}`] });
    try {
      await alone;
      await session.add(QUEUE, payload(1));
      await session.close();
    } finally {
      await replica.stop();
    }
  },
};

const groups: Proof = {
  name: 'groups',
  title: 'jobs of a group run one at a time and in order, other groups beside them',
  needs: 'groups',
  async prove(stand) {
    const [count, each] = [5, 10];
    const of = (n: number): string => `group-${n % count}`;
    const seen = new Sightings();
    const running = new Set<string>();
    let most = 0;
    let overlap: string | undefined;
    const session = await open(stand, {
      groups: { of, isOneAtATime: true },
      ...work(async (data) => {
        const group = of(data.n);
        if (running.has(group)) overlap ??= `job ${data.n} started while another one of its group ran`;
        seen.add(data);
        running.add(group);
        most = Math.max(most, running.size);
        await sleep(5);
        running.delete(group);
      }),
    });
    await session.addBulk(QUEUE, range(0, count * each));
    await allRunOnce(session, seen, count * each);
    if (overlap !== undefined) throw new Error(overlap);
    if (most === 1) throw new Error('no two groups ran at once');
    for (let group = 0; group < count; group++) {
      const order = seen.all.map(({ n }) => n).filter((n) => n % count === group);
      if (
        !isDeepStrictEqual(
          order,
          order.toSorted((a, b) => a - b),
        )
      )
        throw new Error(`the jobs of a group ran in the order ${order.join(', ')}`);
    }
  },
};

const turns: Proof = {
  name: 'turns',
  title: 'groups take turns, so one with many jobs does not delay the others',
  needs: 'turns',
  async prove(stand) {
    const [large, small] = [200, 9];
    const seen = new Sightings();
    const session = await open(stand, {
      groups: { of: (n) => (n < large ? 'large' : `small-${n}`), isOneAtATime: false },
      work: { concurrency: 1, handle: (data) => seen.add(data) },
    });
    await session.addBulk(QUEUE, range(0, large + small));
    await allRunOnce(session, seen, large + small);
    const last = 1 + seen.all.findLastIndex(({ n }) => n >= large);
    // Two rounds: the first one may have begun before all groups were there.
    const most = 2 * (small + 1);
    if (last > most)
      throw new Error(`the last group was served as number ${last} of the jobs, not within ${most}`);
  },
};

const rates: Proof = {
  name: 'rates',
  title: 'no more jobs start than the rate allows',
  needs: 'rates',
  async prove(stand) {
    const rate = { max: 20, perMs: 500 };
    const jobs = 5 * rate.max;
    const seen = new Sightings();
    const starts: number[] = [];
    const session = await open(stand, {
      rate,
      watchStarts: (atMs) => starts.push(atMs),
      ...work((data) => seen.add(data)),
    });
    await session.addBulk(QUEUE, range(0, jobs));
    await allRunOnce(session, seen, jobs);
    if (starts.length !== jobs)
      throw new Error(`${starts.length} starts were heard of where ${jobs} jobs ran`);
    const took = Math.max(...starts) - Math.min(...starts);
    const least = (jobs / rate.max - 1) * rate.perMs - EARLY_MS;
    if (took < least) throw new Error(`all jobs started within ${took} ms, which takes at least ${least} ms`);
    // With fixed windows, the starts of two windows may all be close to the border between them.
    const { largest } = windowsOf(starts, rate.perMs);
    if (largest > 2 * rate.max)
      throw new Error(`${largest} jobs started within ${rate.perMs} ms where the rate is ${rate.max}`);
  },
};

/** In the order of the table. */
export const proofs: readonly Proof[] = [
  once,
  removed,
  acknowledged,
  retries,
  delays,
  schedules,
  results,
  events,
  replicas,
  groups,
  turns,
  rates,
];

const SIZE: Record<string, (control: Redis, key: string) => Promise<number>> = {
  string: async () => 1,
  list: (control, key) => control.llen(key),
  set: (control, key) => control.scard(key),
  zset: (control, key) => control.zcard(key),
  hash: (control, key) => control.hlen(key),
  // An event stream of bounded length belongs to a queue, not to its jobs.
  stream: async () => 1,
};

/** Counts the values, members and fields in all keys of a server, to find what jobs leave behind. */
async function elements(control: Redis): Promise<number> {
  let sum = 0;
  let cursor = '0';
  do {
    const [next, keys] = await control.scan(cursor, 'COUNT', 1_000);
    for (const key of keys) sum += (await SIZE[await control.type(key)]?.(control, key)) ?? 0;
    cursor = next;
  } while (cursor !== '0');
  return sum;
}
