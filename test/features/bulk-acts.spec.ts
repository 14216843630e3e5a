import { describe, expect, it, vi } from 'vitest';
import type { BulkAct } from '#lib/index.js';
import { QueueInspector, RedisRefusedError, RedisUnavailableError } from '#lib/index.js';
import { createInspector } from '#lib/subpaths/inspector.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const SLOW = { max: 1, per: '1h' } as const;
/** Slow enough for other acts between two steps. */
const QUICK = { max: 1, per: '400ms' } as const;

describe.each(['redis', 'memory'] as const)('acts on many jobs in the background (%s)', (kind) => {
  const boot = async () => {
    const app = await bootQueue(redis, {
      watch: false,
      ...(kind === 'memory' && { root: { connection: 'memory' } }),
    });
    await app.queue.pause();
    return app;
  };
  const ended = (acts: { get(id: string): Promise<BulkAct | null> }, id: string) =>
    until(async () => {
      const act = await acts.get(id);
      return act?.state !== 'running' && act;
    }, PATIENT);
  const addMany = (queue: Awaited<ReturnType<typeof boot>>['queue'], count: number) =>
    queue.addBulk(Array.from({ length: count }, (_, n) => ({ name: n % 3 ? 'a' : 'b', data: { n } })));

  it('change all jobs that match, and report how many were examined and changed', async () => {
    const { queue, get } = await boot();
    await addMany(queue, 300);
    const { id, state } = await queue.bulkActs.start('remove', { state: 'waiting', name: 'a' });
    expect(state).toBe('running');
    const act = await ended(queue.bulkActs, id);
    expect(act).toMatchObject({ kind: 'remove', queue: 'work', state: 'done', total: 300, examined: 300 });
    expect(act).toMatchObject({ done: 200, unchanged: 0, startedBy: null, stoppedBy: null, error: null });
    expect((await queue.counts()).waiting).toBe(100);
    await queue.add('b', { n: 1 }, { delay: '1h' });
    const promoted = await queue.bulkActs.start('promote');
    expect(await ended(queue.bulkActs, promoted.id)).toMatchObject({ state: 'done', done: 1 });
    const cancelled = await queue.bulkActs.start('cancel', { where: { n: 3 } }, { reason: 'not needed' });
    expect(await ended(queue.bulkActs, cancelled.id)).toMatchObject({ done: 1, reason: 'not needed' });
    expect((await get(QueueInspector).bulkActs()).map((one) => one.id)).toEqual([
      cancelled.id,
      promoted.id,
      id,
    ]);
  });

  it('go on after an error that ends by itself', async () => {
    const { queue, get } = await boot();
    await addMany(queue, 300);
    const { admin } = get<QueueEngine>(QUEUE_ENGINE);
    const removeAll = admin.removeAll.bind(admin);
    let calls = 0;
    admin.removeAll = async (...args) => {
      calls += 1;
      if (calls === 2) throw new RedisRefusedError('remove', 'READONLY', 'a replica');
      const answers = await removeAll(...args);
      if (calls === 3) throw new RedisUnavailableError('remove', 'unknown', 'the answer was lost');
      return answers;
    };
    atEnd(() => void (admin.removeAll = removeAll));
    const { id } = await queue.bulkActs.start('remove', { state: 'waiting', name: 'a' });
    expect(await ended(queue.bulkActs, id)).toMatchObject({ state: 'done', error: null });
    expect((await queue.counts()).waiting).toBe(100);
    expect(calls).toBe(3);
  });

  it('leave later jobs alone, are stopped from elsewhere, and continue', async () => {
    const { queue } = await boot();
    await addMany(queue, 30);
    const ada = queue.as('ada').bulkActs;
    const { id } = await ada.start('remove', { state: 'waiting' }, { rate: SLOW });
    await until(async () => (await queue.bulkActs.get(id))?.done === 1, PATIENT);
    await queue.add('later', null);
    await queue.as('bob').bulkActs.stop(id);
    expect(await ended(queue.bulkActs, id)).toMatchObject({
      state: 'stopped',
      done: 1,
      startedBy: 'ada',
      stoppedBy: 'bob',
    });
    await expect(queue.bulkActs.resume('gone')).rejects.toMatchObject({ code: 'GODWIT_BULK_ACT_NOT_FOUND' });
    await expect(queue.bulkActs.stop('gone')).rejects.toMatchObject({ code: 'GODWIT_BULK_ACT_NOT_FOUND' });
    await queue.bulkActs.resume(id);
    await until(async () => (await queue.bulkActs.get(id))?.done === 2, PATIENT);
    await expect(queue.bulkActs.resume(id)).rejects.toMatchObject({ code: 'GODWIT_WRONG_STATE' });
    await queue.bulkActs.stop(id);
    expect(await ended(queue.bulkActs, id)).toMatchObject({ state: 'stopped', done: 2 });
    const rest = await queue.bulkActs.start('remove', { state: 'waiting', name: ['a', 'b'] });
    expect(await ended(queue.bulkActs, rest.id)).toMatchObject({ state: 'done', done: 28 });
    expect((await queue.jobs({ state: 'waiting' })).jobs.map(({ name }) => name)).toEqual(['later']);
  });

  it('leave a job alone that has left its state since it was listed', async () => {
    const { queue } = await boot();
    for (const id of ['a', 'b', 'c']) await queue.add('x', null, { id, delay: '1h' });
    const { id } = await queue.bulkActs.start('remove', { state: 'delayed' }, { rate: QUICK });
    await queue.promote('c');
    expect(await ended(queue.bulkActs, id)).toMatchObject({ state: 'done', done: 2, unchanged: 1 });
    expect((await queue.get('c'))!.state).toBe('waiting');
  });

  it('leave a dead job alone that another retry has queued since it was listed', async () => {
    const ran: string[] = [];
    const { queue, get } = await bootQueue(redis, {
      watch: false,
      ...(kind === 'memory' && { root: { connection: 'memory' } }),
      handlers: {
        x: ({ id }) => {
          ran.push(id);
          throw new Error('no');
        },
      },
    });
    const engine = get<QueueEngine>(QUEUE_ENGINE);
    const isDeadAgain = (runs: number) =>
      until(async () => ran.length === runs && (await queue.counts()).dead === 2, PATIENT);
    for (const id of ['a', 'b']) await queue.add('x', null, { id, attempts: 1 });
    await isDeadAgain(2);
    const retryDead = engine.upkeep.retryDead.bind(engine.upkeep);
    /** Has another retry run both jobs after this one has listed them. */
    const meanwhile = (runs: number) =>
      vi.spyOn(engine.upkeep, 'retryDead').mockImplementationOnce(async (name, which) => {
        await retryDead(name, { ids: ['a', 'b'] });
        await isDeadAgain(runs);
        return retryDead(name, which);
      });
    meanwhile(4);
    const { id } = await queue.bulkActs.start('retry', {}, { rate: QUICK });
    expect(await ended(queue.bulkActs, id)).toMatchObject({ state: 'done', done: 0, unchanged: 2 });
    for (const [at, pace] of [{ rate: QUICK }, undefined].entries()) {
      meanwhile(6 + 2 * at);
      expect(await queue.dead.retry({ contains: 'x' }, pace)).toBe(0);
    }
    await isDeadAgain(8);
    await queue.pause();
    const removeDead = engine.upkeep.removeDead.bind(engine.upkeep);
    vi.spyOn(engine.upkeep, 'removeDead').mockImplementationOnce(async (name, which) => {
      await queue.dead.retry('a');
      return removeDead(name, which);
    });
    const removal = await queue.bulkActs.start('remove', { state: 'dead' });
    expect(await ended(queue.bulkActs, removal.id)).toMatchObject({ done: 1, unchanged: 1 });
    expect((await queue.get('a'))!.state).toBe('waiting');
  });

  it('are interrupted when their process is silent, and another process continues them', async () => {
    const { queue, get } = await boot();
    await addMany(queue, 20);
    const { id } = await queue.bulkActs.start('remove', { state: 'waiting' }, { rate: SLOW });
    await until(async () => (await queue.bulkActs.get(id))?.done === 1, PATIENT);
    const engine = get<QueueEngine>(QUEUE_ENGINE);
    // As another process would have left it: silent for a minute.
    await until(async () => {
      const before = (await engine.bulkActs.list()).get(id)!;
      const record = JSON.parse(before) as { updatedAt: number };
      const after = { ...record, runner: 'gone', rate: null, updatedAt: record.updatedAt - 60_000 };
      return engine.bulkActs.put({ id, queue: 'work', before, after: JSON.stringify(after) });
    }, PATIENT);
    expect(await queue.bulkActs.get(id)).toMatchObject({ state: 'interrupted', done: 1 });
    await queue.add('later', null);
    await queue.bulkActs.resume(id);
    // With the job that was changed before, and the one that was added later.
    expect(await ended(queue.bulkActs, id)).toMatchObject({
      state: 'done',
      done: 20,
      total: 21,
      examined: 21,
    });
    expect((await queue.counts()).waiting).toBe(1);
  });

  it('are refused with wrong arguments, and forgotten after 100 later ones', async () => {
    const { queue } = await boot();
    for (const [args, message] of [
      [['explode'], 'bulkActs.start().kind must be one of'],
      [['remove'], 'bulkActs.start().filter.state must be one of'],
      [['retry', { state: 'waiting' }], 'bulkActs.start().filter.state must be one of'],
      [['retry', { nmae: 'a' }], 'nmae'],
      [['retry', {}, { rate: 5 }], 'bulkActs.start().options.rate must be an object'],
      [['cancel', {}, { reason: '' }], 'bulkActs.start().options.reason must be'],
    ] as const)
      await expect(queue.bulkActs.start(...(args as unknown as ['retry']))).rejects.toThrow(message);
    expect(await queue.bulkActs.list()).toEqual([]);
    const first = await queue.bulkActs.start('retry');
    await ended(queue.bulkActs, first.id);
    for (let n = 0; n < 100; n += 1) {
      const { id } = await queue.bulkActs.start('retry');
      await ended(queue.bulkActs, id);
    }
    expect(await queue.bulkActs.list()).toHaveLength(100);
    expect(await queue.bulkActs.get(first.id)).toBeNull();
  });
});

it('an inspector sees and stops an act of an application, and it is recorded', async () => {
  const { queue } = await bootQueue(redis, { watch: false });
  await queue.pause();
  await queue.addBulk([1, 2, 3].map((data) => ({ name: 'a', data })));
  const { id } = await queue.as('ada').bulkActs.start('remove', { state: 'waiting' }, { rate: SLOW });
  const inspector = createInspector({ connection: redis.url, prefix: redis.prefix, actor: 'bob' });
  atEnd(() => inspector.close());
  await inspector.queue('work').bulkActs.stop(id);
  await until(async () => (await inspector.bulkActs())[0]?.state === 'stopped', PATIENT);
  const { actions } = await inspector.actions();
  expect(actions.map(({ actor, action, target }) => [actor, action, target])).toEqual([
    ['bob', 'bulk.stop', id],
    ['ada', 'bulk.start', 'remove {"state":"waiting"}'],
  ]);
});
