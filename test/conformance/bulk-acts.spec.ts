import { describe, expect, it } from 'vitest';
import { ENGINES, useEngine } from './support.js';

describe.each(ENGINES)('records of bulk acts (%s)', (kind) => {
  const t = useEngine(kind);
  const put = (id: string, before: string, after: string, queue = 'q') =>
    t.engine.bulkActs.put({ id, queue, before, after });
  const list = async () => Object.fromEntries(await t.engineWith().bulkActs.list());

  it('are replaced only if they are as they were read', async () => {
    expect(await list()).toEqual({});
    expect(await put('a', '', 'one')).toBe(true);
    expect(await put('b', '', 'other', 'other-queue')).toBe(true);
    expect(await put('a', '', 'two')).toBe(false);
    expect(await put('a', 'other', 'two')).toBe(false);
    expect(await list()).toEqual({ a: 'one', b: 'other' });
    expect(await put('a', 'one', 'two')).toBe(true);
    expect(await put('b', 'other', '', 'other-queue')).toBe(true);
    expect(await put('c', 'gone', '')).toBe(false);
    expect(await list()).toEqual({ a: 'two' });
  });
});
