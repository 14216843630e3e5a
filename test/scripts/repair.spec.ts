import { describe, expect, it } from 'vitest';
import type { RepairReport } from '#lib/job/audit-report.js';
import { encodeBody } from '#lib/job/job-record.js';
import { repair } from '#lib/engine/scripts/audit.js';
import {
  dead,
  FAILURE,
  HASHES_OF_JOBS,
  job,
  kept,
  LEASE_MS,
  QUEUE,
  retried,
  useQueue,
  WORKER,
} from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();
const MAX_STALLS = 5;

const run = () => q.engine.admin.repair(QUEUE, MAX_STALLS);
/**
 * Repairs. Expects that nothing is wrong afterwards and that a second repair changes nothing. Returns in short what
 * was done.
 */
async function repaired(): Promise<string[]> {
  const report = await run();
  expect((await q.engine.admin.audit(QUEUE)).violations).toEqual([]);
  const nothing: RepairReport = { ...report, repairs: [], checked: expect.any(Number) as number };
  expect(await changingNothing(q, run)).toEqual(nothing);
  for (const { text } of report.repairs) expect(text).toMatch(/^(job|worker) ".+" /);
  return report.repairs.map(({ did, id, worker }) => `${did} ${id ?? worker}`).toSorted();
}
const stateOf = async (id: string) => (await q.engine.admin.get(QUEUE, id))?.state;
const saidOf = async (id: string) =>
  (await q.events())
    .filter((event) => event.id === id)
    .map(({ type, reason }) => (reason ? `${type} ${reason}` : type));

it('does not change an intact queue', async () => {
  await q.hold('a', 'b', 'c');
  await q.settle(kept('a', 60_000, '1'), dead('b'));
  await q.add('w', job('r', { priority: 1 }), job('d', { delayMs: 1_000, priority: 2 }));
  expect(await changingNothing(q, run)).toEqual({ repairs: [], checked: 6 });
});

describe('a job without a body', () => {
  const places: Record<string, () => Promise<unknown>> = {
    wait: () => q.add('x'),
    prioritized: () => q.add(job('x', { priority: 3 })),
    delayed: () => q.add(job('x', { delayMs: 60_000, priority: 3 })),
    async suspects() {
      await q.add('x');
      await q.admin.rpoplpush(q.key('wait'), q.key('suspects'));
      await q.admin.hset(q.key('stalls'), 'x', 2);
    },
    active: () => q.hold('x'),
  };

  it.each(Object.keys(places))('in %s is dead as corrupt, and reported', async (kind) => {
    await q.bury('other');
    await places[kind]?.();
    await q.admin.hdel(q.key('jobs'), 'x');
    expect(await repaired()).toEqual(kind === 'delayed' ? ['buried x', 'swept x'] : ['buried x']);
    expect(await q.engine.admin.get(QUEUE, 'x')).toMatchObject({
      state: 'dead',
      body: '',
      failure: { reason: 'corrupt' },
    });
    expect((await saidOf('x')).at(-1)).toBe('dead corrupt');
    expect(await q.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 0, delayed: 0, active: 0, dead: 2 });
    expect(await q.totals()).toMatchObject({ dead: '2' });
    expect(await q.engine.upkeep.retryDead(QUEUE, { ids: ['x'] })).toEqual({ retried: [] });
  });

  it('lets the next job of its group start', async () => {
    await q.engine.limits.set(QUEUE, 'g', 'code', { order: 'strict' });
    const of = (id: string) => job(id, { group: 'g', body: encodeBody('work', 1, { group: 'g' }, '') });
    await q.add(of('x'), of('y'));
    expect(await q.claim()).toEqual(['x']);
    await q.settle(retried('x'));
    await q.admin.hdel(q.key('jobs'), 'x');
    await q.admin.del(q.key('doorbell'));
    expect(await repaired()).toEqual(['buried x']);
    expect(await q.zset('doorbell')).toEqual(['work']);
    expect(await q.claim()).toEqual(['y']);
  });

  it('that has ended stays as it ended', async () => {
    await q.hold('k', 'd');
    await q.settle(kept('k', 60_000, '{"n":1}'), dead('d'));
    const events = await q.events();
    await q.admin.hdel(q.key('jobs'), 'k', 'd');
    expect(await repaired()).toEqual(['emptied d', 'emptied k']);
    expect(await q.engine.admin.get(QUEUE, 'k')).toMatchObject({
      state: 'completed',
      body: '',
      result: '{"n":1}',
    });
    expect(await q.engine.admin.get(QUEUE, 'd')).toMatchObject({ state: 'dead', body: '', failure: FAILURE });
    expect(await q.events()).toEqual(events);
  });

  it('removes old dead jobs if there are more than are kept', async () => {
    const engine = q.engineWith({ deadMax: 1 });
    await q.bury('old');
    await q.add('x');
    await q.admin.hdel(q.key('jobs'), 'x');
    await engine.admin.repair(QUEUE, MAX_STALLS);
    expect(await q.zset('dead')).toEqual(['x']);
    expect(await saidOf('old')).toContain('removed retention');
  });
});

describe('a job in no place', () => {
  it('goes to the head of the line, the oldest first, rings, and is reported', async () => {
    await q.add('c', 'a', 'b', 'z');
    await q.admin.lrem(q.key('wait'), 0, 'a');
    await q.admin.lrem(q.key('wait'), 0, 'b');
    await q.admin.lrem(q.key('wait'), 0, 'c');
    await q.wasRung();
    expect(await repaired()).toEqual(['lined-up a', 'lined-up b', 'lined-up c']);
    expect(await q.wasRung()).toBe(true);
    expect(await saidOf('a')).toEqual(['added', 'added']);
    expect((await q.events()).at(-1)).toMatchObject({ type: 'added', id: 'c', name: 'work' });
    expect(await q.claim()).toEqual(['a', 'b', 'c', 'z']);
  });

  it('keeps the order also if there are more than one script repairs', async () => {
    const ids = Array.from({ length: 450 }, (_, i) => `j${1_000 + i}`);
    await q.add(...ids);
    await q.admin.del(q.key('wait'));
    expect(await repaired()).toEqual(ids.map((id) => `lined-up ${id}`));
    expect(await q.claim(500)).toEqual(ids);
  });

  it('is a suspect if it has stalled twice', async () => {
    await q.add('x');
    await q.admin.hset(q.key('stalls'), 'x', 2);
    await q.admin.del(q.key('wait'));
    expect(await repaired()).toEqual(['lined-up x']);
    expect(await q.list('suspects')).toEqual(['x']);
  });

  it('that had completed does not run again', async () => {
    await q.hold('x');
    await q.settle(kept('x', 60_000, '1'));
    await q.admin.del(q.key('completed'));
    expect(await repaired()).toEqual(['kept-ended x']);
    expect(await q.engine.admin.get(QUEUE, 'x')).toMatchObject({ state: 'completed', result: '1' });
    const keptUntil = Number(await q.admin.zscore(q.key('completed'), 'x'));
    expect(keptUntil - (await q.now())).toBeGreaterThan(86_000_000);
    expect(await q.claim()).toEqual([]);
  });

  it('that had died is dead', async () => {
    await q.hold('x', 'y');
    await q.settle(
      {
        ...dead('x'),
        outcome: {
          kind: 'dead',
          reason: 'unrecoverable',
          failure: { ...FAILURE, reason: 'unrecoverable' },
          counted: true,
        },
      },
      retried('y', { delayMs: 60_000, failure: { ...FAILURE, message: 'no "reason":"at all"' } }),
    );
    await q.admin.del(q.key('dead'), q.key('delayed'));
    expect(await repaired()).toEqual(['kept-ended x', 'lined-up y']);
    const stored = await q.engine.admin.get(QUEUE, 'x');
    expect(stored).toMatchObject({ state: 'dead' });
    expect(stored!.endedAt).toBeGreaterThan((await q.now()) - 60_000);
    expect(await q.claim()).toEqual(['y']);
  });

  it('and has nothing in its body is dead as corrupt', async () => {
    await q.add('x');
    await q.admin.hset(q.key('jobs'), 'x', '');
    await q.admin.del(q.key('wait'));
    expect(await repaired()).toEqual(['buried x']);
    expect((await saidOf('x')).at(-1)).toBe('dead corrupt');
  });
});

describe('an id that no client can name', () => {
  const IDS: Record<string, Buffer> = {
    'not UTF-8': Buffer.from([0x61, 0xff]),
    'a line break': Buffer.from('\n'),
    empty: Buffer.from(''),
  };
  const BODY = job('x').body;
  const PLACES: Record<string, (id: Buffer) => Promise<unknown>> = {
    'no place': async () => undefined,
    wait: (id) => q.admin.rpush(q.key('wait'), id, id),
    suspects: (id) => q.admin.rpush(q.key('suspects'), id),
    prioritized: (id) => q.admin.zadd(q.key('prioritized'), 1, id),
    grouped: (id) => q.admin.zadd(q.key('grouped'), 1, id),
    delayed: (id) => q.admin.zadd(q.key('delayed'), 1, id),
    dead: (id) => q.admin.zadd(q.key('dead'), 1_700_000_000_000, id),
    completed: async (id) => q.admin.zadd(q.key('completed'), (await q.now()) + 60_000, id),
    active: async (id) => {
      await q.hold('own');
      await q.admin.sadd(q.key('active'), id);
    },
  };

  it.each(Object.keys(IDS).flatMap((name) => Object.keys(PLACES).map((place) => [name, place] as const)))(
    'since it is %s, in %s: the job is dead as corrupt under another one',
    async (name, place) => {
      const id = IDS[name]!;
      await q.add('other');
      await PLACES[place]!(id);
      await q.admin.hset(q.key('jobs'), id, BODY);
      await q.admin.hset(q.key('progress'), id, '1');
      const hex = `\n${id.toString('hex')}`;
      expect((await q.engine.admin.audit(QUEUE)).violations).toMatchObject([{ kind: 'unreadable', id: hex }]);
      const [buried, ...more] = await repaired();
      expect(buried).toMatch(/^buried unreadable-[0-9a-f]{40}$/);
      expect(more).toEqual([`swept ${hex}`]);
      const as = buried!.slice('buried '.length);
      expect(await q.engine.admin.get(QUEUE, as)).toMatchObject({
        state: 'dead',
        body: BODY,
        failure: { reason: 'corrupt', message: 'the id of this job could not be read' },
      });
      expect((await saidOf(as)).at(-1)).toBe('dead corrupt');
      expect(await q.engine.upkeep.removeDead(QUEUE, { ids: [as] })).toEqual({ removed: [as] });
      expect(await stateOf('other')).toBe(place === 'active' ? 'active' : 'waiting');
    },
  );

  it('and without a job, is removed', async () => {
    for (const id of Object.values(IDS)) await q.admin.hset(q.key('failures'), id, '1');
    expect(await repaired()).toEqual(['swept \n', 'swept \n0a', 'swept \n61ff']);
    expect(await q.hash('failures')).toEqual({});
  });

  it('is found in a queue that is read in pages', async () => {
    const ids = Array.from({ length: 10_100 }, (_, i) => `j${i}`);
    for (let first = 0; first < ids.length; first += 500) await q.add(...ids.slice(first, first + 500));
    for (const id of Object.values(IDS)) await q.admin.hset(q.key('jobs'), id, BODY);
    await q.admin.hset(q.keys.fixed.jobsA, 'astray', BODY);
    const { repairs } = await run();
    expect(repairs.map(({ did }) => did).toSorted()).toEqual([
      'buried',
      'buried',
      'buried',
      'lined-up',
      'swept',
    ]);
    expect((await q.engine.admin.audit(QUEUE)).violations).toEqual([]);
  });
});

describe('a body in the hash of other ids', () => {
  it.each(['no place', 'wait'])('is moved to the right hash, for a job in %s', async (place) => {
    if (place === 'wait') await q.admin.rpush(q.key('wait'), '~x');
    await q.admin.hset(q.keys.fixed.jobsQ, '~x', job('~x').body);
    const { violations } = await q.engine.admin.audit(QUEUE);
    expect(violations.map(({ kind }) => kind)).toContain('unreadable');
    expect(await repaired()).toEqual(place === 'wait' ? ['swept ~x'] : ['lined-up ~x', 'swept ~x']);
    expect(await q.claim()).toEqual(['~x']);
  });

  it('is found among more jobs than one script looks at', async () => {
    const ids = Array.from({ length: 11_000 }, (_, i) => `j${i}`);
    await q.admin.rpush(q.key('wait'), ...ids);
    await q.admin.hset(q.key('jobs'), ...ids.flatMap((id) => [id, job(id).body]));
    await q.add('x');
    await q.admin.hset(q.keys.fixed.jobsQ, 'x', 'forged');
    expect(await repaired()).toEqual(['swept x']);
  });

  it('is removed if the job has another one', async () => {
    await q.add('x');
    await q.admin.hset(q.keys.fixed.jobsQ, 'x', 'forged');
    expect(await repaired()).toEqual(['swept x']);
    expect(await q.engine.admin.get(QUEUE, 'x')).toMatchObject({ state: 'waiting', body: job('x').body });
    expect(await q.hash('jobsQ')).toEqual({});
  });
});

describe('a job in two places', () => {
  const put: Record<string, (id: string) => Promise<unknown>> = {
    completed: async (id) => {
      await q.admin.zadd(q.key('completed'), (await q.now()) + 60_000, id);
      await q.admin.hset(q.key('results'), id, '1\n{}');
    },
    dead: async (id) => q.admin.zadd(q.key('dead'), await q.now(), id),
    active: async (id) => {
      await q.hold('own');
      await q.admin.sadd(q.key('active'), id);
    },
    suspects: (id) => q.admin.rpush(q.key('suspects'), id),
    wait: (id) => q.admin.rpush(q.key('wait'), id),
    prioritized: (id) => q.admin.zadd(q.key('prioritized'), 1, id),
    grouped: (id) => q.admin.zadd(q.key('grouped'), 1, id),
    delayed: (id) => q.admin.zadd(q.key('delayed'), 1, id),
  };
  const order = Object.keys(put);
  const pairs = order.flatMap((first, i) => order.slice(i + 1).map((second) => [first, second] as const));

  it.each(pairs)('%s and %s is in the first only', async (first, second) => {
    await put[first]?.('x');
    await put[second]?.('x');
    await q.admin.hset(q.key('jobs'), 'x', job('x').body);
    expect(await repaired()).toEqual(['kept-one x']);
    const at: Record<string, string> = {
      suspects: 'waiting',
      wait: 'waiting',
      prioritized: 'waiting',
      grouped: 'waiting',
    };
    expect(await stateOf('x')).toBe(at[first] ?? first);
    const key = first === 'active' ? `active:${WORKER}` : first;
    expect(JSON.stringify((await q.dump())[key])).toContain('"x"');
  });

  it('stays with the worker that is known', async () => {
    await q.hold('x');
    // Before the other in any order of workers: its lease ends first.
    await q.admin.sadd(q.keys.active('w0'), 'x');
    await q.admin.zadd(q.key('workers'), (await q.now()) + 6_000, 'w0');
    expect(await repaired()).toEqual(['kept-one x']);
    expect(await q.engine.admin.get(QUEUE, 'x')).toMatchObject({ state: 'active', worker: WORKER });
  });

  it.each(['wait', 'suspects'] as const)(
    'or more than once in %s is there once, at its first position',
    async (kind) => {
      await q.add('x', 'y');
      await q.admin.rpush(q.key('wait'), 'x', 'x');
      if (kind === 'suspects') await q.admin.rename(q.key('wait'), q.key('suspects'));
      expect(await repaired()).toEqual(['kept-one x']);
      expect(await q.list(kind)).toEqual(['x', 'y']);
    },
  );
});

describe('data that does not belong to a job is removed', () => {
  it.each(HASHES_OF_JOBS)('from %s, if the job is gone', async (kind) => {
    await q.admin.hset(q.key(kind), 'gone', '1', 'other', '1');
    await q.add(kind === 'priorities' ? job('other', { delayMs: 60_000, priority: 1 }) : 'other');
    if (kind === 'toCancel') await q.claim();
    const strays = kind === 'results' ? ['swept gone', 'swept other'] : ['swept gone'];
    expect(await repaired()).toEqual(strays);
    expect(Object.keys(await q.hash(kind))).toEqual(kind === 'results' ? [] : ['other']);
  });

  it('if its state has no such data', async () => {
    await q.hold('k', 'h');
    await q.settle(kept('k', 60_000, '1'));
    for (const kind of ['attempts', 'stalls', 'priorities'] as const) await q.admin.hset(q.key(kind), 'k', 1);
    await q.admin.hset(q.key('results'), 'h', '1\n{}');
    await q.admin.hset(q.key('priorities'), 'h', 1);
    await q.add('waits');
    await q.admin.hset(q.key('toCancel'), { h: 'a reason', k: 'too late', waits: 'too early' });
    expect(await repaired()).toEqual(['swept h', 'swept k', 'swept waits']);
    expect(await q.hash('toCancel')).toEqual({ h: 'a reason' });
    expect(await q.engine.admin.get(QUEUE, 'k')).toMatchObject({ state: 'completed', result: '1' });
    expect(await q.engine.admin.get(QUEUE, 'h')).toMatchObject({ state: 'active' });
  });
});

describe('a worker that holds jobs', () => {
  const leaseMs = async () => Number(await q.admin.zscore(q.key('workers'), WORKER)) - (await q.now());

  it('and has lost its lease gets one again', async () => {
    await q.hold('x');
    await q.admin.del(q.key('workers'));
    expect(await repaired()).toEqual([`leased ${WORKER}`]);
    expect(await leaseMs()).toBeGreaterThan(LEASE_MS - 5_000);
    expect(await leaseMs()).toBeLessThanOrEqual(LEASE_MS);
    expect(await stateOf('x')).toBe('active');
  });

  it('and has a lease too far ahead gets one of the right length', async () => {
    await q.hold('x');
    await q.admin.zadd(q.key('workers'), (await q.now()) + 3_600_000, WORKER);
    expect(await repaired()).toEqual([`leased ${WORKER}`]);
    expect(await leaseMs()).toBeLessThanOrEqual(LEASE_MS);
  });

  it('and uses longer leases than others gets one of its own length again', async () => {
    await q.add('x');
    await q.exchange({ want: 1, leaseMs: LEASE_MS * 10 });
    await q.admin.del(q.key('workers'));
    expect(await repaired()).toEqual([`leased ${WORKER}`]);
    expect(await leaseMs()).toBeGreaterThan(LEASE_MS * 9);
    expect(await stateOf('x')).toBe('active');
  });

  it.each(['under a lease', 'without a lease'])(
    'and is not known, %s, loses them; they wait again',
    async (how) => {
      await q.hold('x', 'y', 'z');
      await q.admin.hset(q.key('stalls'), 'y', 1, 'z', MAX_STALLS);
      await q.admin.del(q.key('worker'));
      if (how === 'without a lease') await q.admin.del(q.key('workers'));
      expect(await repaired()).toEqual(['recovered x', 'recovered y', 'recovered z']);
      expect(await q.list('wait')).toEqual(['x']);
      expect(await q.list('suspects')).toEqual(['y']);
      expect(await q.engine.admin.get(QUEUE, 'z')).toMatchObject({
        state: 'dead',
        failure: { reason: 'stalled' },
      });
      expect(await q.hash('stalls')).toEqual({ x: '1', y: '2', z: String(MAX_STALLS + 1) });
      expect((await saidOf('x')).at(-1)).toBe('stalled');
      expect(await q.admin.exists(q.key('workers'), q.key('worker'), q.key('active'))).toBe(0);
    },
  );

  it('or holds none is not changed, known or not', async () => {
    await q.admin.zadd(q.key('workers'), (await q.now()) + 5_000, 'idle');
    expect(await changingNothing(q, () => repairer().repairBatch(QUEUE, []))).toEqual([]);
  });

  it('whose lease is over is left to be recovered', async () => {
    await q.hold('x');
    await q.admin.zadd(q.key('workers'), (await q.now()) - 1, WORKER);
    await q.admin.del(q.key('worker'));
    expect(await changingNothing(q, run)).toMatchObject({ repairs: [] });
  });
});

describe('refused', () => {
  itRefusesWrongTypes(q, {
    keys: [...repair.keys, 'active', 'worker'].filter((key) => key !== 'workers') as typeof repair.keys,
    except: ['events', 'cancelled'],
    async prepare() {
      await q.hold('x', 'y');
      await q.admin.hset(q.key('jobs'), 'lost', job('lost').body);
      await q.admin.hdel(q.key('jobs'), 'y');
      return () => repairer().repairBatch(QUEUE, ['x', 'y', 'lost']);
    },
  });

  it('changes nothing if the active set of the last worker is of another type', async () => {
    const now = await q.now();
    await q.admin.zadd(q.key('workers'), now + 3_600_000, 'w1', now + 7_200_000, 'w2');
    await q.admin.sadd(q.keys.active('w1'), 'x');
    await q.admin.hset(q.keys.worker('w1'), 'seq', 1);
    await q.admin.set(q.keys.active('w2'), 'not ours');
    await changingNothing(q, () =>
      expect(repairer().repairBatch(QUEUE, [])).rejects.toMatchObject({
        code: 'GODWIT_REDIS_REFUSED',
        reply: 'WRONGTYPE',
      }),
    );
  });
});

/** The script without the audit before it, so that it must look for itself. */
function repairer(): Repairer {
  const { auditor } = q.engine.admin as unknown as { auditor: (stalls: number) => Repairer };
  return auditor.call(q.engine.admin, MAX_STALLS);
}

interface Repairer {
  repairBatch(queue: string, ids: readonly string[]): Promise<unknown>;
}
