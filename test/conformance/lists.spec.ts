import { describe, expect, it } from 'vitest';
import type { JobsCall, JobsPlace } from '#lib/contract/admin-verbs.js';
import { encodeBody } from '#lib/job/job-record.js';
import { completed, dead, FAILURE, job, kept, LEASE_MS, QUEUE, retried, WORKER } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('lists of jobs on %s', (kind) => {
  const t = useEngine(kind);
  const page = (call: Partial<JobsCall> & Pick<JobsCall, 'state'>) =>
    t.engine.admin.jobs(QUEUE, { after: null, limit: 100, ...call });
  const ids = async (call: Parameters<typeof page>[0]) => (await page(call)).jobs.map(({ id }) => id);

  /** All ids, in pages of so many; `between` is done behind each page. */
  async function inPages(
    call: Parameters<typeof page>[0],
    between: (page: number) => Promise<unknown> = async () => {},
  ): Promise<string[]> {
    const found: string[] = [];
    let after: JobsPlace | null = null;
    for (let pages = 1; ; pages++) {
      const answer = await page({ limit: 2, ...call, after });
      expect(answer.jobs.length).toBeLessThanOrEqual(call.limit ?? 2);
      found.push(...answer.jobs.map(({ id }) => id));
      if (answer.next === null) return found;
      after = answer.next;
      await between(pages);
    }
  }

  /** A line in each of its three parts. */
  async function waiting(): Promise<void> {
    const lose = async (worker: string) => {
      const call = { worker, beatMs: 1, leaseMs: LEASE_MS, maxStalls: 9 };
      await t.advance(LEASE_MS + 1);
      await t.engine.recover(QUEUE, call);
      await t.advance(10);
      await t.engine.recover(QUEUE, call);
    };
    await t.hold('s1', 's2');
    await lose(WORKER);
    expect(await t.claim(9, 'w2')).toEqual(['s1', 's2']);
    await lose('w2');
    await t.add('a', job('late', { priority: 9 }), 'b', job('early', { priority: 1 }), 'c');
  }

  it('have the waiting jobs in the order in which they will run', async () => {
    await waiting();
    const order = ['s1', 's2', 'a', 'b', 'c', 'early', 'late'];
    expect(await ids({ state: 'waiting' })).toEqual(order);
    expect(await ids({ state: 'waiting', backward: true })).toEqual(order.toReversed());
    for (const limit of [1, 2, 3, 7, 8]) {
      expect(await inPages({ state: 'waiting', limit })).toEqual(order);
      expect(await inPages({ state: 'waiting', limit, backward: true })).toEqual(order.toReversed());
    }
  });

  it('begin after an offset, in either order', async () => {
    await waiting();
    const order = ['s1', 's2', 'a', 'b', 'c', 'early', 'late'];
    for (let offset = 0; offset <= order.length + 1; offset++) {
      expect(await ids({ state: 'waiting', offset })).toEqual(order.slice(offset));
      expect(await ids({ state: 'waiting', offset, limit: 2 })).toEqual(order.slice(offset, offset + 2));
      expect(await ids({ state: 'waiting', offset, backward: true })).toEqual(
        order.toReversed().slice(offset),
      );
      const { next } = await page({ state: 'waiting', offset, limit: 1 });
      const rest = next && (await page({ state: 'waiting', after: next })).jobs;
      expect(rest?.length ?? 0).toBe(Math.max(0, order.length - offset - 1));
    }
  });

  it('skip jobs that have ended or are gone if they begin after an offset', async () => {
    await t.hold('a', 'b', 'c', 'd', 'e');
    expect(await ids({ state: 'active', offset: 1, limit: 1 })).toEqual(['b']);
    expect(await ids({ state: 'active', offset: 1, backward: true })).toHaveLength(4);
    await t.settle(kept('a', 1_000, '1'), kept('b', 60_000, '1'), kept('c', 70_000, '1'));
    expect(await ids({ state: 'completed', offset: 1 })).toEqual(['b', 'c']);
    await t.advance(2_000);
    expect(await ids({ state: 'completed', offset: 1 })).toEqual(['c']);
    expect(await ids({ state: 'completed', offset: 1, backward: true })).toEqual(['b']);
    expect(await ids({ state: 'completed', offset: 2 })).toEqual([]);
  });

  it('have the jobs of each state, and of no other', async () => {
    await t.bury('dead');
    await t.hold('completed', 'active', 'retried', 'gone');
    await t.settle(kept('completed', 60_000, '1'), retried('retried', { delayMs: 900 }), completed('gone'));
    await t.add('waiting', job('delayed', { delayMs: 500 }));
    for (const state of ['waiting', 'active', 'completed', 'dead'] as const) {
      const { jobs, next, examined } = await page({ state });
      expect({ next, examined }).toEqual({ next: null, examined: 1 });
      expect(jobs).toEqual([await t.engine.admin.get(QUEUE, state)]);
    }
    expect(await ids({ state: 'delayed' })).toEqual(['delayed', 'retried']);
    expect(await ids({ state: 'delayed', backward: true })).toEqual(['retried', 'delayed']);
  });

  it('have an active job from its claim on, by workers and ids', async () => {
    await t.add('z', 'b', 'a', 'c');
    expect(await t.claim(3)).toEqual(['z', 'b', 'a']);
    expect(await t.claim(1, 'w0')).toEqual(['c']);
    expect((await page({ state: 'active' })).jobs.map(({ id, worker }) => [id, worker])).toEqual([
      ['c', 'w0'],
      ['a', WORKER],
      ['b', WORKER],
      ['z', WORKER],
    ]);
    expect(await inPages({ state: 'active', limit: 1 })).toEqual(['c', 'a', 'b', 'z']);
    expect(await inPages({ state: 'active', limit: 2, backward: true })).toEqual(['z', 'b', 'a', 'c']);
    // The worker of the first page holds nothing any more.
    const first = await page({ state: 'active', limit: 1 });
    expect(first.next).not.toBeNull();
    await t.exchanged({ worker: 'w0', want: 0, settled: [completed('c')] });
    expect((await page({ state: 'active', after: first.next })).jobs.map(({ id }) => id)).toEqual([
      'a',
      'b',
      'z',
    ]);
  });

  it('have only the active jobs of some workers, and look at no others', async () => {
    await t.add('a', 'b', 'c', 'd');
    expect(await t.claim(2)).toEqual(['a', 'b']);
    expect(await t.claim(1, 'w0')).toEqual(['c']);
    expect(await t.claim(1, 'w9')).toEqual(['d']);
    const found = await page({ state: 'active', workers: ['w9', 'w0', 'w-gone'] });
    expect(found).toMatchObject({ jobs: [{ id: 'c' }, { id: 'd' }], next: null, examined: 2 });
    expect(await inPages({ state: 'active', workers: ['w0', 'w9'], limit: 1 })).toEqual(['c', 'd']);
    expect(await page({ state: 'active', workers: [] })).toEqual({ jobs: [], next: null, examined: 0 });
  });

  it('have only jobs whose priority is in a range, with both ends', async () => {
    const body = (priority: number) => encodeBody('work', t.now, { priority }, 'null');
    const of = (priority: number) => job(`p${priority}`, { priority, body: body(priority) });
    const later = job('later', { priority: 5, delayMs: 900, body: body(5) });
    await t.add('none', of(1), of(5), of(6), of(2_097_151), later);
    const within = (from: number, to: number, state: JobsCall['state'] = 'waiting') =>
      ids({ state, priority: { from, to } });
    expect(await within(0, 0)).toEqual(['none']);
    expect(await within(0, 5)).toEqual(['none', 'p1', 'p5']);
    expect(await within(5, 5)).toEqual(['p5']);
    expect(await within(6, 2_097_151)).toEqual(['p6', 'p2097151']);
    expect(await within(5, 5, 'delayed')).toEqual(['later']);
    expect(await within(1, 4, 'delayed')).toEqual([]);
    expect(await page({ state: 'waiting', priority: { from: 2, to: 3 } })).toMatchObject({ examined: 5 });
  });

  it('leave out completed jobs whose retention is over', async () => {
    await t.hold('a', 'b');
    await t.settle(kept('a', 1_000), kept('b', 60_000));
    expect(await ids({ state: 'completed' })).toEqual(['a', 'b']);
    await t.advance(1_000);
    expect(await ids({ state: 'completed' })).toEqual(['b']);
    expect(await ids({ state: 'completed', backward: true })).toEqual(['b']);
  });

  describe('while jobs move between two pages, meet each job that stays exactly once', () => {
    const all = Array.from({ length: 12 }, (_, i) => `j${String(i).padStart(2, '0')}`);

    it('when workers take the first ones', async () => {
      await t.add(...all);
      const found = await inPages({ state: 'waiting', limit: 3 }, () => t.claim(1));
      expect(found).toEqual(all);
    });

    it('when workers take more than the page had', async () => {
      await t.add(...all);
      const found = await inPages({ state: 'waiting', limit: 3 }, (pages) => t.claim(pages === 1 ? 5 : 0));
      expect(found).toEqual([...all.slice(0, 3), ...all.slice(5)]);
    });

    it('when others are added, in either order', async () => {
      await t.add(...all);
      const more = (n: number) => (pages: number) => (pages < 3 ? t.add(`x${n}${pages}`) : Promise.resolve());
      const found = await inPages({ state: 'waiting', limit: 5 }, more(1));
      expect(found.slice(0, 12)).toEqual(all);
      const backward = await inPages({ state: 'waiting', limit: 5, backward: true }, more(2));
      expect(backward.filter((id) => id.startsWith('j'))).toEqual(all.toReversed());
      expect(new Set(backward).size).toBe(backward.length);
    });

    it('when a few thousand are added behind the last one', async () => {
      await t.add(...all);
      const found = await inPages({ state: 'waiting', limit: 9, backward: true }, async () => {
        for (let n = 0; n < 3; n++) await t.add(...Array.from({ length: 1_500 }, (_, i) => `x${n}${i}`));
      });
      expect(found).toEqual(all.toReversed());
    });

    it('when the last one of a page is cancelled', async () => {
      await t.add(...all);
      const found = await inPages({ state: 'waiting', limit: 4 }, (pages) =>
        t.engine.admin.cancel(QUEUE, all[4 * pages - 1] ?? 'none', 'why'),
      );
      expect(found).toEqual(all);
    });

    it.each([1, 4])('when the last three are cancelled, in pages of %i', async (limit) => {
      await t.add(...all);
      const found = await inPages({ state: 'waiting', limit }, async (pages) => {
        if (pages !== 8 / limit) return;
        for (const id of ['j05', 'j06', 'j07']) await t.engine.admin.cancel(QUEUE, id, 'why');
      });
      expect(found).toEqual(all);
    });

    it.each([false, true])('when all of a page are cancelled, backward: %s', async (backward) => {
      await t.add(...all);
      const listed = backward ? all.toReversed() : all;
      const found = await inPages({ state: 'waiting', limit: 4, backward }, async (pages) => {
        if (pages !== 2) return;
        for (const id of listed.slice(4, 8)) await t.engine.admin.cancel(QUEUE, id, 'why');
      });
      expect(found).toEqual(listed);
    });

    it('when the last one of a page runs again', async () => {
      await t.add(...all);
      const found = await inPages({ state: 'waiting', limit: 4 }, async (pages) => {
        if (pages !== 1) return;
        await t.claim(4);
        await t.settle(...all.slice(0, 3).map((id) => completed(id)), retried('j03', { delayMs: 0 }));
      });
      expect(found).toEqual([...all, 'j03']);
    });

    it('when they are sorted', async () => {
      await t.add(...all.map((id, i) => job(id, { delayMs: 1_000 + i })));
      const forward = await inPages({ state: 'delayed', limit: 4 }, (pages) =>
        t.engine.admin.promoteNow(QUEUE, all[4 * pages - 1]!),
      );
      expect(forward).toEqual(all);
      const rest = all.filter((id) => id !== 'j03' && id !== 'j07');
      const backward = await inPages({ state: 'delayed', limit: 3, backward: true }, (pages) =>
        t.engine.admin.promoteNow(QUEUE, rest.at(-3 * pages)!),
      );
      expect(backward).toEqual(rest.toReversed());
    });
  });

  it('are found by name and by a text in id, name or error, in any case', async () => {
    await t.bury(job('a', { name: 'mail' }), job('b'), job('Mailer-7'));
    const found = (more: object) => ids({ state: 'dead', ...more });
    expect(await found({ name: 'mail' })).toEqual(['a']);
    expect(await found({ contains: 'mail' })).toEqual(['Mailer-7', 'a']);
    expect(await found({ contains: 'NO LUCK', name: 'mail' })).toEqual(['a']);
    expect(await found({ contains: 'mail.' })).toEqual([]);
    await t.add('Änderung');
    expect(await ids({ state: 'waiting', contains: 'ÄNDER' })).toEqual(['Änderung']);
    expect(await ids({ state: 'waiting', contains: 'änder' })).toEqual([]);
    await t.engine.admin.remove(QUEUE, 'Änderung');
    await t.add(job('w1', { name: 'mail' }), 'w2');
    expect(await ids({ state: 'waiting', name: 'mail' })).toEqual(['w1']);
    expect(await page({ state: 'waiting', contains: 'none' })).toEqual({ jobs: [], next: null, examined: 2 });
  });

  it('are found by age since their end or, before it, since their add', async () => {
    const old = (id: string) => job(id, { body: encodeBody('work', t.now - 60_000, {}, 'null') });
    const young = (id: string) => job(id, { body: encodeBody('work', t.now - 1_000, {}, 'null') });
    await t.bury(old('f'));
    await t.hold(old('ended'), old('held'));
    await t.settle(kept('ended', 600_000));
    await t.add(old('a'), young('b'), { ...old('c'), delayMs: 9_000 }, { ...young('d'), delayMs: 9_000 });
    await t.add({ ...old('e'), priority: 1 }, job('unreadable'));
    const found = (state: JobsCall['state']) => (olderThanMs: number | undefined, newerThanMs?: number) =>
      ids({ state, olderThanMs, newerThanMs });
    expect(await found('waiting')(30_000)).toEqual(['a', 'e']);
    expect(await found('waiting')(undefined, 30_000)).toEqual(['b']);
    expect(await found('waiting')(500, 30_000)).toEqual(['b']);
    expect(await found('waiting')(70_000)).toEqual([]);
    expect(await ids({ state: 'waiting', olderThanMs: 30_000, backward: true, limit: 1 })).toEqual(['e']);
    expect(await found('delayed')(30_000)).toEqual(['c']);
    expect(await found('active')(30_000)).toEqual(['held']);
    for (const state of ['completed', 'dead'] as const) {
      expect(await found(state)(30_000)).toEqual([]);
      expect(await found(state)(undefined, 30_000)).toHaveLength(1);
      await t.advance(30_000);
      expect(await found(state)(30_000)).toHaveLength(1);
      expect(await found(state)(undefined, 20_000)).toEqual([]);
      await t.advance(-30_000);
    }
  });

  it('are read without data, progress, log and large results if a brief list is requested', async () => {
    const body = encodeBody('work', 1, { priority: 3 }, '{"of":"a"}');
    await t.hold(job('a', { body }), 'b', 'c');
    await t.engine.note(QUEUE, {
      worker: WORKER,
      id: 'c',
      name: 'work',
      attempt: 1,
      progress: '1',
      log: 'x',
    });
    await t.settle(kept('a', 60_000, '"small"'), kept('b', 60_000, JSON.stringify('x'.repeat(9_000))));
    const [a, b] = (await page({ state: 'completed', brief: true })).jobs;
    expect(a).toEqual({
      ...(await t.engine.admin.get(QUEUE, 'a')),
      body: encodeBody('work', 1, { priority: 3 }, ''),
    });
    expect(b).toMatchObject({ id: 'b', state: 'completed', endedAt: t.now, result: null, resultFault: null });
    expect(await t.engine.admin.get(QUEUE, 'a', true)).toEqual(a);
    expect(await t.engine.admin.get(QUEUE, 'b', true)).toEqual(b);
    expect(await t.engine.admin.get(QUEUE, 'none', true)).toBeNull();
    expect((await page({ state: 'active', brief: true })).jobs[0]).toMatchObject({
      progress: null,
      logs: [],
    });
    expect(await t.engine.admin.get(QUEUE, 'c', true)).toMatchObject({ progress: null, logs: [] });
    expect((await page({ state: 'active' })).jobs[0]).toMatchObject({ progress: '1', logs: [{ text: 'x' }] });
  });

  it('of a group have its waiting jobs of all priorities, and look at no others in lines', async () => {
    const inGroup = (id: string, group: string, priority = 0) =>
      job(id, { group, ...(priority > 0 && { priority }), body: encodeBody('work', 0, { group }, 'null') });
    for (let i = 0; i < 3; i++)
      await t.add(
        `plain${i}`,
        inGroup(`a${i}`, 'a'),
        inGroup(`b${i}`, 'b'),
        inGroup(`late${i}`, 'a', 5),
        inGroup(`c${i}`, 'a b'),
      );
    await t.add({ ...inGroup('delayed', 'a'), delayMs: 500 }, { ...inGroup('other', 'b'), delayMs: 500 });
    const call = { state: 'waiting', group: 'a' } as const;
    const order = ['a0', 'a1', 'a2', 'late0', 'late1', 'late2'];
    // The jobs without a group are looked at too: one that is tried again waits among them.
    expect(await page(call)).toMatchObject({ examined: 9, next: null });
    for (const limit of [1, 2, 3, 4, 6, 7]) {
      expect(await inPages({ ...call, limit })).toEqual(order);
      expect(await inPages({ ...call, limit, backward: true })).toEqual(order.toReversed());
    }
    expect(await inPages(call, () => t.add(job(`more${Math.random()}`, { group: 'b' })))).toEqual(order);
    expect(await ids({ ...call, contains: '2' })).toEqual(['a2', 'late2']);
    expect(await ids({ state: 'waiting', group: 'none' })).toEqual([]);
    expect(await ids({ state: 'delayed', group: 'a' })).toEqual(['delayed']);
    await t.claim(99);
    expect((await ids({ state: 'active', group: 'a b' })).toSorted()).toEqual(['c0', 'c1', 'c2']);
  });

  it('of a queue without jobs are empty', async () => {
    for (const state of ['waiting', 'delayed', 'active', 'completed', 'dead'] as const)
      expect(await page({ state })).toEqual({ jobs: [], next: null, examined: 0 });
  });

  it('end a call that finds nothing in 10,000 jobs, and report that', async () => {
    for (let from = 0; from < 10_500; from += 500)
      await t.add(...Array.from({ length: 500 }, (_, i) => job(`n${from + i}`)));
    await t.add(job('last', { name: 'rare' }));
    const first = await page({ state: 'waiting', name: 'rare' });
    expect(first).toMatchObject({ jobs: [], examined: 10_000 });
    expect(await page({ state: 'waiting', name: 'rare', after: first.next })).toMatchObject({
      jobs: [{ id: 'last' }],
      next: null,
      examined: 501,
    });
  });

  describe('by the data', () => {
    const holds = (id: string, data: unknown) =>
      job(id, { body: encodeBody('work', 1, {}, JSON.stringify(data)) });
    const where = (match: NonNullable<JobsCall['where']>) => ids({ state: 'waiting', where: match });

    it('have those with all the values in their fields', async () => {
      await t.add(
        holds('a', { tenant: 7, user: { id: 'u-1', tags: ['x'] }, done: false, note: null }),
        holds('b', { tenant: 77, user: { id: 'u-1"' }, done: true }),
        holds('c', { tenant: '7', other: { tenant: 7 }, user: 'id' }),
        holds('d', 7),
        holds('e', [{ tenant: 7 }]),
        'no body of ours',
      );
      expect(await where({ tenant: 7 })).toEqual(['a']);
      expect(await where({ tenant: '7' })).toEqual(['c']);
      expect(await where({ 'other.tenant': 7 })).toEqual(['c']);
      expect(await where({ 'user.id': 'u-1' })).toEqual(['a']);
      expect(await where({ 'user.id': 'u-1"' })).toEqual(['b']);
      expect(await where({ done: false })).toEqual(['a']);
      expect(await where({ note: null })).toEqual(['a']);
      expect(await where({ tenant: 7, done: true })).toEqual([]);
      expect(await where({ 'user.id': 'u-1', done: true })).toEqual([]);
      expect(await where({ 'user.tags.0': 'x' })).toEqual([]);
      expect(await where({ length: 1 })).toEqual([]);
    });

    it.each([1, -1, 1.5, 1e21, 2 ** 53, 1e-7, 'é', '\u2028', 'a\nb', '{"x":1}', ''])(
      'have those with the value %j and no others',
      async (value) => {
        await t.add(
          holds('a', { of: value, more: 'cut \ud83d' }),
          holds('b', { of: [value] }),
          holds('c', { of: `${value}0` }),
        );
        expect(await where({ of: value })).toEqual(['a']);
      },
    );

    it('have them in pages, of any state and without their data', async () => {
      const all = Array.from({ length: 20 }, (_, i) => holds(`j${i}`, { even: i % 2 === 0 }));
      await t.add(...all);
      const even = Array.from({ length: 10 }, (_, i) => `j${2 * i}`);
      expect(await inPages({ state: 'waiting', where: { even: true }, limit: 3, brief: true })).toEqual(even);
      await t.claim(20);
      expect((await ids({ state: 'active', where: { even: true } })).toSorted()).toEqual(even.toSorted());
    });
  });

  it('give the last error of a job', async () => {
    await t.hold('a');
    await t.settle(dead('a'));
    const [a] = (await page({ state: 'dead', brief: true })).jobs;
    expect(a!.failure).toEqual({ ...FAILURE, reason: 'unrecoverable' });
  });
});
