import { describe, expect, it } from 'vitest';
import type { RedisStore } from '#lib/engine/redis-store.js';
import { audit } from '#lib/engine/scripts/audit.js';
import { dead, HASHES_OF_JOBS, job, kept, LEASE_MS, QUEUE, retried, useQueue, WORKER } from './support.js';
import { changingNothing } from './unchanged.js';
import { countsOf } from '../support/queue-states.js';

const q = useQueue();

const auditing = () => changingNothing(q, () => q.engine.admin.audit(QUEUE));
/** The problems found, each as `kind id or worker: where`. */
async function faults(): Promise<string[]> {
  const { violations } = await auditing();
  for (const { text } of violations) expect(text).toMatch(/^(job|worker) ".+" /);
  return violations.map(({ kind, id, worker, where }) => `${kind} ${id ?? worker}: ${where.join(' ')}`);
}

/** Jobs in every place, with all keys they may have. Two workers are among them. */
async function wholeQueue(): Promise<void> {
  await q.hold('kept', 'dead', 'again', 'held');
  await q.note('kept', 'dead', 'again');
  await q.settle(kept('kept', 60_000, '1'), dead('dead'), retried('again', { delayMs: 60_000, priority: 3 }));
  await q.add('other', 'suspect');
  await q.claim(1, 'w2');
  await q.admin.rpoplpush(q.key('wait'), q.key('suspects'));
  await q.admin.hset(q.key('stalls'), 'suspect', 2);
  await q.add('waiting', job('ranked', { priority: 1 }), job('late', { delayMs: 60_000 }));
}

it('of no queue finds nothing', async () => {
  const counts = { waiting: 0, delayed: 0, active: 0, completed: 0, dead: 0, cancelled: 0 };
  expect(await auditing()).toEqual({ violations: [], checked: 0, counts });
});

it('of an intact queue finds nothing, and counts its jobs', async () => {
  await wholeQueue();
  const counts = { waiting: 3, delayed: 2, active: 2, completed: 1, dead: 1, cancelled: 0 };
  expect(await auditing()).toEqual({ violations: [], checked: 9, counts });
});

describe('finds', () => {
  it.each(['wait', 'suspects', 'prioritized', 'delayed', 'active', 'dead', 'completed'] as const)(
    'a job in %s without a body',
    async (kind) => {
      await wholeQueue();
      const at = {
        wait: 'waiting',
        suspects: 'suspect',
        prioritized: 'ranked',
        delayed: 'late',
        active: 'held',
      };
      const id = { ...at, dead: 'dead', completed: 'kept' }[kind];
      await q.admin.hdel(q.key('jobs'), id);
      const where = kind === 'active' ? `active:${WORKER}` : kind;
      const strays = {
        dead: 'attempts failures progress logs',
        completed: 'progress logs',
        suspects: 'stalls',
      };
      const beside = strays[kind as keyof typeof strays];
      expect(await faults()).toEqual([
        `no-body ${id}: ${where}`,
        ...(beside ? [`stray ${id}: ${beside}`] : []),
      ]);
    },
  );

  it.each(['wait', 'suspects', 'prioritized', 'delayed', 'dead', 'completed'] as const)(
    'jobs that are in no place once %s is gone',
    async (kind) => {
      await wholeQueue();
      const found = await q.engine.admin.counts(QUEUE);
      await q.admin.del(q.key(kind));
      const { violations } = await auditing();
      const lost = violations.filter((one) => one.kind === 'no-place');
      expect(lost.length).toBeGreaterThan(0);
      expect(lost.every(({ where }) => where.join() === 'jobs')).toBe(true);
      const left = (await auditing()).counts;
      const sum = (counts: object) => Object.values(counts).reduce((a, b) => a + Number(b), 0);
      expect(sum(left)).toBe(sum(found) - lost.length);
    },
  );

  it('a job in two places, and one that two workers hold', async () => {
    await wholeQueue();
    await q.admin.zadd(q.key('delayed'), 5, 'waiting');
    await q.admin.sadd(q.keys.active('w2'), 'held');
    expect(await faults()).toEqual(
      expect.arrayContaining([
        'two-places waiting: wait delayed',
        `two-places held: active:${WORKER} active:w2`,
      ]),
    );
    expect(await faults()).toHaveLength(2);
  });

  it.each(['wait', 'suspects'] as const)('a job that is twice in %s', async (kind) => {
    await wholeQueue();
    const [id = ''] = await q.list(kind);
    await q.admin.rpush(q.key(kind), id);
    expect(await faults()).toEqual([`repeated ${id}: ${kind}`]);
  });

  it.each(HASHES_OF_JOBS)('what is left in %s of a job that is gone', async (kind) => {
    await wholeQueue();
    await q.admin.hset(q.key(kind), 'gone', '1');
    expect(await faults()).toEqual([`stray gone: ${kind}`]);
  });

  it.each([
    ['results', 'waiting'],
    ['priorities', 'waiting'],
    ['priorities', 'held'],
    ['attempts', 'kept'],
    ['stalls', 'kept'],
    ['toCancel', 'waiting'],
    ['toCancel', 'kept'],
  ] as const)('%s of a job whose state has none (%s)', async (kind, id) => {
    await wholeQueue();
    await q.admin.hset(q.key(kind), id, '1');
    expect(await faults()).toEqual([`stray ${id}: ${kind}`]);
  });

  it('a worker that holds jobs and has no lease', async () => {
    await wholeQueue();
    await q.admin.zrem(q.key('workers'), WORKER);
    expect(await faults()).toEqual([`no-lease ${WORKER}: active:${WORKER} workers`]);
  });

  it('a worker that holds jobs and has no record, as long as its lease is not over', async () => {
    await wholeQueue();
    await q.admin.del(q.key('worker'));
    expect(await faults()).toEqual([`no-record ${WORKER}: active:${WORKER} worker:${WORKER}`]);
    await q.admin.zadd(q.key('workers'), (await q.now()) - 1_000, WORKER);
    expect(await faults()).toEqual([]);
  });

  it('a lease that is too far ahead', async () => {
    await wholeQueue();
    await q.admin.zadd(q.key('workers'), (await q.now()) + LEASE_MS + 60_000, 'w2');
    expect(await faults()).toEqual(['lease-ahead w2: workers']);
  });

  it('but not a lease that has the length its worker uses', async () => {
    await q.add('a');
    await q.exchange({ want: 1, leaseMs: LEASE_MS * 10 });
    expect(await faults()).toEqual([]);
    await q.admin.zadd(q.key('workers'), (await q.now()) + LEASE_MS * 11, WORKER);
    expect(await faults()).toEqual([`lease-ahead ${WORKER}: workers`]);
  });
});

describe('of very many jobs, read in pages', () => {
  const MANY = 11_000;
  const many = async () => {
    for (let at = 0; at < MANY; at += 1_000)
      await q.add(...Array.from({ length: 1_000 }, (_, i) => `j${at + i}`));
  };

  it('finds the same', async () => {
    await wholeQueue();
    await many();
    const fine = await auditing();
    expect(fine).toMatchObject({ violations: [], checked: MANY + 9 });
    expect(fine.counts).toEqual(
      countsOf({ waiting: MANY + 3, delayed: 2, active: 2, completed: 1, dead: 1 }),
    );
    await q.admin.hdel(q.key('jobs'), 'waiting', 'held');
    await q.admin.lrem(q.key('wait'), 1, 'j5');
    await q.admin.zrem(q.key('prioritized'), 'ranked');
    await q.admin.rpush(q.key('wait'), 'j7', 'late');
    await q.admin.hset(q.key('logs'), 'gone', '1');
    await q.admin.zrem(q.key('workers'), 'w2');
    expect((await faults()).toSorted()).toEqual(
      [
        'no-body waiting: wait',
        `no-body held: active:${WORKER}`,
        'no-place j5: jobs',
        'no-place ranked: jobs',
        'repeated j7: wait',
        'two-places late: wait delayed',
        'stray gone: logs',
        'no-lease w2: active:w2 workers',
      ].toSorted(),
    );
  });

  it('finds nothing while jobs are claimed, settled and added', async () => {
    await many();
    const done = new AbortController();
    const work = async () => {
      for (let round = 0; !done.signal.aborted; round++) {
        const ids = await q.claim(50);
        await q.settle(...ids.map((id, i) => (i % 2 ? dead(id) : retried(id, { delayMs: 60_000 }))));
        await q.add(`more-${round}`);
      }
    };
    const worked = work();
    const { violations } = await q.engine.admin.audit(QUEUE).finally(() => done.abort());
    await worked;
    expect(violations).toEqual([]);
    expect((await q.engine.admin.counts(QUEUE)).dead).toBeGreaterThan(0);
  });
});

describe('an amount that is too large for one script', () => {
  const PLACES = ['jobs', 'wait', 'suspects', 'prioritized', 'delayed', 'dead', 'completed'] as const;
  const fill = async (kind: (typeof PLACES)[number], ids: readonly string[]) => {
    const key = q.key(kind);
    if (kind === 'jobs') await q.admin.hset(key, ...ids.flatMap((id) => [id, 'body']));
    else if (kind === 'wait' || kind === 'suspects') await q.admin.rpush(key, ...ids);
    else await q.admin.zadd(key, ...ids.flatMap((id) => [1, id]));
  };

  it.each(PLACES)('is detected by the number of entries in %s alone', async (kind) => {
    const { store } = q.engine as unknown as { store: RedisStore };
    const asking = () => store.run(audit, q.keys.fixed, { workers: '', all: 1, max: 3 }, { ids: [] }, []);
    await fill(kind, ['a', 'b', 'c']);
    expect(await asking()).toMatchObject({ holders: [] });
    await fill(kind, ['d']);
    expect(await asking()).toBe('large');
  });
});

describe('refused', () => {
  it.each([...audit.keys, 'active', 'worker'] as const)('if %s is of another type', async (kind) => {
    await wholeQueue();
    await q.admin.del(q.key(kind));
    await q.admin.set(q.key(kind), 'not ours');
    await changingNothing(q, () =>
      expect(q.engine.admin.audit(QUEUE)).rejects.toMatchObject({
        code: 'GODWIT_REDIS_REFUSED',
        reply: 'WRONGTYPE',
      }),
    );
  });
});
