import { describe, expect, it } from 'vitest';
import { processRecord } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('processes (%s)', (kind) => {
  const t = useEngine(kind);
  const list = async () => (await t.engine.processes.list()).records;
  const register = (id: string) => t.engine.processes.register(processRecord({ id }), 1_000);

  it('are listed as they registered, by every engine of the store, until they unregister', async () => {
    expect(await t.engine.processes.list()).toEqual({ records: [], silent: [], unreadable: [] });
    await register('p1');
    await register('__proto__');
    const all = await t.engineWith().processes.list();
    expect(all.unreadable).toEqual([]);
    expect(all.records.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
      processRecord({ id: '__proto__' }),
      processRecord({ id: 'p1' }),
    ]);
    await t.engine.processes.unregister('__proto__');
    await t.engine.processes.unregister('nobody');
    expect(await list()).toEqual([processRecord({ id: 'p1' })]);
  });

  it('replace their record when they register again', async () => {
    await register('p1');
    await t.engine.processes.register(processRecord({ id: 'p1', state: 'draining' }), 1_000);
    expect(await list()).toMatchObject([{ id: 'p1', state: 'draining' }]);
  });

  it('are gone when their lease is over, and stay when they register again', async () => {
    await register('p1');
    await register('p2');
    await t.advance(999);
    await register('p2');
    await t.advance(1);
    expect(await list()).toMatchObject([{ id: 'p2' }]);
  });

  it('are silent for ten minutes after their lease is over, unless they stop or another process has their place', async () => {
    const silent = async () => {
      const found = (await t.engine.processes.list()).silent;
      return Object.fromEntries(found.map(({ record, silentMs }) => [record.id, silentMs]));
    };
    const registerAt = (id: string, pid: number) =>
      t.engine.processes.register(processRecord({ id, pid }), 1_000);
    await registerAt('p1', 11);
    await registerAt('p2', 12);
    await registerAt('p3', 13);
    await t.advance(999);
    expect(await silent()).toEqual({});
    await t.advance(1);
    expect(await silent()).toEqual({ p1: 0, p2: 0, p3: 0 });
    await t.engine.processes.unregister('p2');
    await registerAt('new', 13);
    expect(await silent()).toEqual({ p1: 0 });
    await t.advance(599_999);
    expect(await silent()).toEqual({ new: 598_999, p1: 599_999, p3: 599_999 });
    await t.advance(1);
    expect(await silent()).toEqual({ new: 599_000 });
    await registerAt('p1', 11);
    expect((await list()).map(({ id }) => id)).toEqual(['p1']);
  });

  it('are known by their workers for some minutes after they are gone', async () => {
    await t.engine.processes.register(processRecord({ id: 'p1' }), 1_000);
    const worker = processRecord().pools[0]!.workers[0]!;
    await t.advance(300_000);
    expect(await t.engine.processes.ofWorker(worker)).toEqual(processRecord({ id: 'p1' }));
    expect(await t.engine.processes.ofWorker('another')).toBeNull();
    await t.advance(600_000);
    const pools = [{ ...processRecord().pools[0]!, workers: ['w9'] }];
    await t.engine.processes.register(processRecord({ id: 'p2', pools }), 1_000);
    expect(await t.engine.processes.ofWorker(worker)).toBeNull();
  });

  it('let one process lead at a time, for one lease from each call, and return to all what it stored last', async () => {
    const lead = (owner: string, state = '', leaseMs = 1_000) =>
      t.engine.processes.lead({ owner, leaseMs, state });
    expect(await lead('a')).toEqual({ isLeader: true, state: '' });
    expect(await lead('b', 'mine')).toEqual({ isLeader: false, state: '' });
    expect(await lead('a', 'one')).toEqual({ isLeader: true, state: 'one' });
    await t.advance(999);
    expect(await lead('b')).toEqual({ isLeader: false, state: 'one' });
    expect(await lead('a')).toEqual({ isLeader: true, state: 'one' });
    await t.advance(1_000);
    expect(await lead('b')).toEqual({ isLeader: true, state: 'one' });
    expect(await lead('a', 'late')).toEqual({ isLeader: false, state: 'one' });
    expect(await lead('b', 'two', 0)).toEqual({ isLeader: false, state: 'two' });
    expect(await lead('a')).toEqual({ isLeader: true, state: 'two' });
  });

  it('list the queues with added jobs, schedules or a process that works on them, until they are obliterated', async () => {
    const { engine } = t;
    const queues = async () => [...(await t.engineWith().processes.queues())].toSorted();
    expect(await queues()).toEqual([]);
    await engine.admin.counts('q3');
    await t.add('one');
    await engine.processes.worksOn(['q2']);
    await engine.processes.worksOn([]);
    await engine.schedules.put('q3', { id: 's', revision: 0, record: '{}', nextAt: null });
    expect(await queues()).toEqual(['q', 'q2', 'q3']);
    await engine.admin.obliterate('q', false);
    await engine.admin.obliterate('q3', false);
    expect(await queues()).toEqual(['q2']);
    await t.add('two');
    expect(await queues()).toEqual(['q', 'q2']);
  });

  it('get orders until they have carried them out, or end', async () => {
    const { processes } = t.engine;
    const order = (id: string) => processes.order('p1', { id, kind: 'pause', queue: null, by: 'ada' });
    const ids = async (obeyed = '') =>
      (await processes.register(processRecord({ id: 'p1', obeyed }), 1_000)).orders.map(({ id }) => id);
    expect(await order('o1')).toBe(false);
    expect(await ids()).toEqual([]);
    expect(await order('o1')).toBe(true);
    expect(await order('o2')).toBe(true);
    expect(await order('o2')).toBe(true);
    const p2 = processRecord({ id: 'p2' });
    expect(await processes.register(p2, 1_000)).toEqual({ orders: [], hasLostData: false });
    expect(await processes.register(p2, 1_000)).toEqual({ orders: [], hasLostData: false });
    expect(await ids()).toEqual(['o1', 'o2']);
    expect(await ids('o1')).toEqual(['o2']);
    expect(await order('o3')).toBe(true);
    expect(await ids('o2')).toEqual(['o3']);
    expect(await ids('o3')).toEqual([]);
    await order('o4');
    await t.advance(1_000);
    expect(await order('o5')).toBe(false);
    await processes.unregister('p1');
    expect(await ids()).toEqual([]);
  });

  it('are copies of what was registered', async () => {
    const record = processRecord();
    await t.engine.processes.register(record, 1_000);
    (record as { host: string }).host = 'elsewhere';
    const [listed] = await list();
    expect(listed).toMatchObject({ host: 'box' });
    (listed!.pools as unknown[]).length = 0;
    expect(await list()).toEqual([processRecord()]);
  });
});
