import { expect, it } from 'vitest';
import { KEEP_BULK_ACTS_MS } from '#lib/contract/bulk-act-verbs.js';
import { putBulkAct } from '#lib/engine/scripts/processes.js';
import { useQueue } from './support.js';
import { itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const put = (before: string, after: string) => q.engine.bulkActs.put({ id: 'a', queue: 'q', before, after });

it('writes a record that nobody has changed, and lets all records expire', async () => {
  expect(await put('', 'one')).toBe(true);
  expect(await put('', 'two')).toBe(false);
  expect(await put('one', 'two')).toBe(true);
  expect(await q.admin.hgetall(q.key('bulkActs'))).toEqual({ a: 'two' });
  const left = await q.admin.pttl(q.key('bulkActs'));
  expect([left > KEEP_BULK_ACTS_MS - 60_000, left <= KEEP_BULK_ACTS_MS]).toEqual([true, true]);
  expect(await put('two', '')).toBe(true);
  expect(await q.admin.exists(q.key('bulkActs'))).toBe(0);
});

itRefusesWrongTypes(q, {
  keys: putBulkAct.keys,
  async prepare() {
    await put('', 'one');
    return () => put('one', 'two');
  },
});
