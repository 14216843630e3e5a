import { describe, expect, it } from 'vitest';
import { NotRunningError } from '#lib/errors.js';
import { callOf, completed, LEASE_MS, QUEUE, WORKER } from '../scripts/support.js';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('an engine on %s', (kind) => {
  const t = useEngine(kind);

  it('is there once it is open, and can be opened again', async () => {
    const engine = t.engineWith();
    expect(await engine.open()).toBe(true);
    expect(await engine.open()).toBe(true);
  });

  it('works without having been opened', async () => {
    expect(await t.engineWith().enqueue(QUEUE, callOf(['a'], 1))).toEqual({ kind: 'stored', duplicates: [] });
  });

  it('can be closed twice, and before it was opened', async () => {
    const engine = t.engineWith();
    await engine.close();
    await expect(engine.close()).resolves.toBeUndefined();
  });

  it('refuses every call once it is closed, and what it has stored stays', async () => {
    await t.add('a', 'b');
    const engine = t.engineWith();
    await engine.open();
    await engine.close();
    const calls = [
      () => engine.enqueue(QUEUE, callOf(['c'], 1, 'late')),
      () => engine.beat(QUEUE, WORKER, LEASE_MS),
      () => engine.admin.counts(QUEUE),
      () => engine.upkeep.trim(QUEUE),
      () => engine.look([{ queue: QUEUE, worker: WORKER }]),
      () => engine.lastEvent(QUEUE),
      () => engine.awaitBell([QUEUE], 5),
      () => engine.ring(QUEUE),
    ];
    for (const call of calls) await expect(call()).rejects.toBeInstanceOf(NotRunningError);
    expect(await t.claim()).toEqual(['a', 'b']);
  });

  it('shows the same to every engine on its store', async () => {
    const other = t.engineWith();
    await t.hold('a');
    expect(await other.admin.get(QUEUE, 'a')).toMatchObject({ state: 'active', worker: WORKER });
    expect(await t.exchanged({ settled: [completed('a')] }, other)).toMatchObject({ lost: [] });
    expect(await t.engine.admin.get(QUEUE, 'a')).toBeNull();
  });

  it('takes a write that changes nothing', async () => {
    await t.add('a');
    await t.engine.admin.tryWrite(QUEUE);
    await t.engine.admin.tryWrite('another');
    expect(await t.engine.admin.counts(QUEUE)).toMatchObject({ waiting: 1 });
  });

  it('knows the time approximately', () => {
    expect(Math.abs(t.engine.now() - t.now)).toBeLessThan(60_000);
  });
});
