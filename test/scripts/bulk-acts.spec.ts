import { expect, it } from 'vitest';
import { bulkActs } from '#lib/engine/scripts/processes.js';
import { useQueue } from './support.js';
import { itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

it('lists ids with their records', async () => {
  expect(await q.engine.bulkActs.list()).toEqual(new Map());
  await q.engine.bulkActs.put({ id: 'a', queue: 'q', before: '', after: 'one' });
  await q.engine.bulkActs.put({ id: 'b', queue: 'q', before: '', after: 'two' });
  expect(await q.engine.bulkActs.list()).toEqual(
    new Map([
      ['a', 'one'],
      ['b', 'two'],
    ]),
  );
});

itRefusesWrongTypes(q, {
  keys: bulkActs.keys,
  async prepare() {
    await q.engine.bulkActs.put({ id: 'a', queue: 'q', before: '', after: 'one' });
    return () => q.engine.bulkActs.list();
  },
});
