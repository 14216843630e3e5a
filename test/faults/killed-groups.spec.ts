import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { atEnd } from '../support/cleanup.js';
import { QueueKeys } from '#lib/engine/keys.js';
import type { QueueEvent } from '#lib/events/queue-event.js';
import { bootQueue, itOnRedis, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis({ leaves: ['active', 'worker', 'workers', 'processes'] });
const CHILD = fileURLToPath(new URL('./children/hanging-worker.cjs', import.meta.url));

const GROUPS = 1_000;
const LEASE_MS = 1_000;
const LIMITED = {
  limits: { concurrency: GROUPS, rate: { max: 1_500, per: '1s' } },
  groups: { concurrency: 1 },
  events: { max: 100_000 },
} as const;

itOnRedis(
  'the places that killed processes had of a shared limit are free once their lease is over',
  async () => {
    let running = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running -= 1;
    };
    const uses = ['api'];
    const { queue, queueOf, runtime } = await bootQueue(redis, {
      root: { autoStart: false, lease: { duration: '1s' }, limits: { api: { concurrency: 3 } } },
      queue: { uses },
      queues: [{ name: 'other', uses }],
      handlers: { job: work },
      watch: false,
    });
    await queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'job', data: null })));
    const child = startChildren(1, 10, { uses })[0]!;
    await until(async () => (await queue.counts()).active === 3, {
      ...PATIENT,
      what: () => 'the child has all places',
    });
    await queueOf('other').addBulk(Array.from({ length: 20 }, () => ({ name: 'job', data: null })));
    await runtime.start();
    await runtime.work('other', { job: work });
    const { shares } = new QueueKeys(redis.prefix, '').fixed;
    const heldUntil = async () => Number((await redis.admin.hget(shares, 'api'))!.split(' ')[2]);
    const first = await heldUntil();
    await until(async () => (await heldUntil()) > first + 1_000, {
      ...PATIENT,
      what: () => 'the child has renewed what it holds for longer than its lease',
    });
    expect(await queueOf('other').counts()).toMatchObject({ waiting: 20, active: 0 });
    child.kill('SIGKILL');
    await once(child, 'exit');
    const left = async () => {
      const counts = await Promise.all([queue, queueOf('other')].map((one) => one.counts()));
      return counts.reduce(
        (sum, { waiting, active, delayed, dead }) => sum + waiting + active + delayed + dead,
        0,
      );
    };
    await until(async () => (await left()) === 0, { timeout: 30_000, what: () => 'all jobs complete' });
    expect(most).toBeLessThanOrEqual(3);
    await until(async () => (await queue.limits.shared('api').state())!.running === 0, {
      ...PATIENT,
      what: () => 'all places are free',
    });
  },
  60_000,
);

// Other queues count the running jobs of a group. The count outlives a killed worker, so the group stands still.
itOnRedis(
  'a thousand groups go on whose jobs were held by killed processes: nothing is lost, no limit is passed, no key is stuck',
  async () => {
    const runs = new Map<string, number>();
    const { queue, runtime, said } = await bootQueue(redis, {
      root: { autoStart: false, lease: { duration: '1s' } },
      queue: LIMITED,
      concurrency: 300,
      handlers: { job: ({ id }) => void runs.set(id, (runs.get(id) ?? 0) + 1) },
    });
    const groupOf = new Map<string, number>();
    const add = async (key: string, onDuplicate?: 'keepLast') => {
      const jobs = Array.from({ length: GROUPS }, (_, i) => ({
        name: 'job',
        data: i,
        options: {
          group: `tenant ${i}`,
          unique: { key: `${key} ${i}`, ...(onDuplicate && { onDuplicate }) },
        },
      }));
      const added = await queue.addBulk(jobs);
      for (const [i, { id }] of added.entries()) groupOf.set(id, i);
      return added;
    };
    const isDuplicate = ({ duplicate }: { duplicate: boolean }) => duplicate;

    const held = await add('held');
    const children = startChildren(4, GROUPS / 4, LIMITED);
    await until(async () => (await queue.counts()).active === GROUPS, {
      timeout: 45_000,
      what: () => 'the children run a job of each group',
    });
    expect(await add('held')).toMatchObject(groupsOf({ duplicate: true, state: 'active' }));
    expect((await add('held', 'keepLast')).filter(isDuplicate)).toEqual([]);
    expect((await add('free')).filter(isDuplicate)).toEqual([]);
    await runtime.start();
    // No group may start another job while the children live.
    expect(await queue.counts()).toMatchObject({ waiting: GROUPS, delayed: GROUPS, active: GROUPS });

    const killedAt = await redisNow();
    for (const child of children) child.kill('SIGKILL');
    await said.take(3 * GROUPS, ({ type }) => type === 'completed', { timeout: 60_000 });
    expect([...runs.values()].filter((times) => times !== 1)).toEqual([]);
    expect(runs.size).toBe(3 * GROUPS);
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, delayed: 0, dead: 0 });
    const seen = watch(said.values, (id) => groupOf.get(id)!, killedAt);
    expect(seen).toMatchObject({ completed: 3 * GROUPS, mostOfGroup: 1 });
    // A job stalls twice if its child lost its lease before it was killed, because a busy machine did not let it run for a second.
    const stalled = said.values.filter(({ type }) => type === 'stalled').map(({ jobId }) => jobId!);
    expect(new Set(stalled)).toEqual(new Set(held.map(({ id }) => id)));
    expect(seen.most).toBe(GROUPS);
    expect(seen.mostInWindow).toBeLessThanOrEqual(LIMITED.limits.rate.max);
    // Not in ms for each group: on a busy machine a round of all groups takes seconds. A worker that nobody wakes looks after 5 s.
    expect(seen.longestSilenceMs).toBeLessThan(3 * LEASE_MS);
    expect(seen.mostStartsOfOthers).toBeLessThan(2 * GROUPS);

    expect((await queue.audit()).violations).toEqual([]);
    for (const key of ['held', 'free']) expect((await add(key)).filter(isDuplicate)).toEqual([]);
    await said.take(5 * GROUPS, ({ type }) => type === 'completed', { timeout: 60_000 });
    expect((await queue.audit()).violations).toEqual([]);
    expect(await queue.limits.list()).toMatchObject([{ of: 'queue', running: 0 }, { of: 'groups' }]);
    expect(await queue.groups()).toMatchObject({ groups: [] });
  },
  120_000,
);

const groupsOf = <T>(each: T): T[] => Array.from({ length: GROUPS }, () => each);

async function redisNow(): Promise<number> {
  const [seconds, us] = await redis.admin.time();
  return Number(seconds) * 1_000 + Number(us) / 1_000;
}

function startChildren(count: number, concurrency: number, options: object): ChildProcess[] {
  const args = [CHILD, redis.url, redis.prefix, String(concurrency), JSON.stringify(options)];
  return Array.from({ length: count }, () => {
    const child = spawn(process.execPath, args, { stdio: 'ignore' });
    atEnd(async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    });
    return child;
  });
}

const ENDS = new Set(['completed', 'stalled', 'dead', 'retrying', 'released', 'cancelled', 'removed']);

/** Claims of jobs that a worker gave back without starting them, because its event loop was blocked. A rate does not count them. */
function givenBack(events: readonly QueueEvent[]): Set<QueueEvent> {
  const claims = new Map<string, QueueEvent>();
  const given = new Set<QueueEvent>();
  for (const event of events) {
    if (event.type === 'active') claims.set(event.jobId, event);
    if (event.type === 'released') given.add(claims.get(event.jobId)!);
  }
  return given;
}

/** The events of the jobs, in the order and at the times of Redis. */
function watch(events: readonly QueueEvent[], groupOf: (id: string) => number, killedAt: number) {
  const running = new Set<string>();
  const ofGroup = new Map<number, number>();
  const startsAtLast = new Map<number, number>();
  const starts: number[] = [];
  const counts: Record<string, number> = {};
  let [most, mostOfGroup, longestSilenceMs, mostStartsOfOthers, mostInWindow, first] = [0, 0, 0, 0, 0, 0];
  let [lastMs, startsBefore] = [killedAt, 0];
  const given = givenBack(events);
  for (const event of events) {
    const { type, jobId, at } = event;
    if (type !== 'active' && !ENDS.has(type)) continue;
    counts[type] = (counts[type] ?? 0) + 1;
    const group = groupOf(jobId!);
    const ms = at.getTime();
    if (type === 'active') running.add(jobId!);
    else running.delete(jobId!);
    const now = (ofGroup.get(group) ?? 0) + (type === 'active' ? 1 : -1);
    ofGroup.set(group, now);
    most = Math.max(most, running.size);
    mostOfGroup = Math.max(mostOfGroup, now);
    if (ms < killedAt) {
      startsBefore = starts.length + 1;
    } else {
      longestSilenceMs = Math.max(longestSilenceMs, ms - lastMs);
      lastMs = ms;
      const others = starts.length - (startsAtLast.get(group) ?? startsBefore);
      mostStartsOfOthers = Math.max(mostStartsOfOthers, others);
      startsAtLast.set(group, starts.length);
    }
    if (type !== 'active' || given.has(event)) continue;
    starts.push(ms);
    while (starts[first]! <= ms - 1_000) first += 1;
    mostInWindow = Math.max(mostInWindow, starts.length - first);
  }
  const ofRuns = { most, mostOfGroup, longestSilenceMs, mostStartsOfOthers };
  return { ...counts, ...ofRuns, mostInWindow };
}
