import { describe, expect, it } from 'vitest';
import { bootQueue, brief, itOnRedis, keyOf, PATIENT } from '../support/queue-app.js';
import { gated, oneOfEach, refused } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

describe('queue.clean', () => {
  it('removes jobs of one state and leaves the others, with an event for each', async () => {
    const { gate, handlers } = gated();
    const { queue, said } = await bootQueue(redis, { handlers });
    await oneOfEach(queue);
    expect((await queue.clean({ state: 'waiting' })).toSorted()).toEqual(['ranked', 'waiting']);
    expect(await queue.clean({ state: 'delayed' })).toEqual(['delayed']);
    expect(await queue.counts()).toEqual({ waiting: 0, delayed: 0, active: 1, completed: 1, dead: 1 });
    expect(await queue.clean({ state: 'completed' })).toEqual(['completed']);
    expect(await queue.clean({ state: 'dead' })).toEqual(['dead']);
    expect(await queue.clean({ state: 'dead' })).toEqual([]);
    expect(await queue.counts()).toEqual({ waiting: 0, delayed: 0, active: 1, completed: 0, dead: 0 });
    const removed = await said.take(5, (event) => event.type === 'removed', PATIENT);
    expect(new Set(removed.map((event) => brief(event)['reason']))).toEqual(new Set(['cleaned']));
    expect((await queue.audit()).violations).toEqual([]);
    gate.open();
  });

  itOnRedis('takes those that are old enough, at most as many as asked for', async () => {
    const { queue } = await bootQueue(redis, { watch: false });
    const ids = ['a', 'b', 'c', 'd'];
    await queue.addBulk(ids.map((id) => ({ name: 'job', data: null, options: { id } })));
    for (const id of ['a', 'b', 'c']) {
      const [name, at, ...rest] = (await redis.admin.hget(keyOf(redis, 'jobs'), id))!.split('\n');
      const added = (Number.parseInt(at!, 36) - 3_600_000).toString(36);
      await redis.admin.hset(keyOf(redis, 'jobs'), id, [name, added, ...rest].join('\n'));
    }
    expect(await queue.clean({ state: 'waiting', olderThan: '2h' })).toEqual([]);
    expect(await queue.clean({ state: 'waiting', olderThan: '30m', limit: 2 })).toEqual(['a', 'b']);
    expect(await queue.clean({ state: 'waiting', olderThan: '30m', limit: 2 })).toEqual(['c']);
    expect(await queue.counts()).toMatchObject({ waiting: 1 });
  });

  it.each([
    ['nothing', undefined],
    ['no state', {}],
    ['a running state', { state: 'active' }],
    ['a hostile state', { state: '__proto__' }],
    ['null', { state: null }],
    ['no age', { state: 'dead', olderThan: 'old' }],
    ['a limit of 0', { state: 'dead', limit: 0 }],
    ['a limit beyond what one call does', { state: 'dead', limit: 1_001 }],
    ['an unknown field', { state: 'dead', newerThan: 5 }],
  ])('refuses %s in words, and removes nothing', async (_, options) => {
    const { queue } = await bootQueue(redis, { watch: false });
    await queue.add('job', 1);
    expect(await refused(queue.clean(options as never))).toMatchObject({
      code: 'GODWIT_INVALID_OPTION',
      message: expect.stringContaining('clean()'),
    });
    expect(await queue.counts()).toMatchObject({ waiting: 1 });
  });
});

describe('queue.obliterate', () => {
  it('lets those who follow the events go on without a gap, and waits for none of them', async () => {
    const { queue, said, events } = await bootQueue(redis);
    await queue.addBulk(Array.from({ length: 20 }, (_, data) => ({ name: 'job', data })));
    const seen = await said.take(20, () => true, PATIENT);
    const gaps: unknown[] = [];
    const watching = events.status$.subscribe((status) => void (status.state === 'gap' && gaps.push(status)));
    await queue.pause();
    await queue.obliterate();
    const { id } = await queue.add('job', 'after');
    // At once, not when the reader next compares numbers.
    const next = await said.first((event) => 'jobId' in event && event.jobId === id, { timeout: 4_000 });
    expect(Number(next.id)).toBe(Number(seen.at(-1)!.id) + 2);
    const later: string[] = [];
    const resumed = events
      .of('work', { since: seen.at(-1)!.id })
      .subscribe((event) => void later.push(event.id));
    await until(() => later.includes(next.id), PATIENT);
    expect(later).toEqual([next.id]);
    resumed.unsubscribe();
    watching.unsubscribe();
    expect(gaps.filter((gap) => (gap as { missed: unknown }).missed === null)).toEqual([]);
  });

  it('forced under a running job resurrects nothing, whatever its worker says then', async () => {
    const { gate, handlers } = gated();
    const { queue, logs } = await bootQueue(redis, { handlers });
    await queue.add('active', 1, { id: 'active', retention: '1h' });
    await until(async () => (await queue.get('active'))?.state === 'active', PATIENT);
    await queue.obliterate({ force: true });
    gate.open();
    await logs.complaint(/the lease ended|given to another worker/);
    expect(await queue.get('active')).toBeNull();
    expect(await queue.counts()).toEqual({ waiting: 0, delayed: 0, active: 0, completed: 0, dead: 0 });
    expect((await queue.audit()).violations).toEqual([]);
    expect((await redis.keys()).filter((key) => key.includes(':stats:'))).toEqual([]);
  });
});
