import { expect, it } from 'vitest';
import { QUEUE, useQueue } from './support.js';
import { itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

it('writes one event, with its payload as it was given', async () => {
  await q.engine.admin.publish(QUEUE, 'imported', '{"rows":3}');
  await q.engine.admin.publish(QUEUE, '__proto__', 'null');
  const said = (await q.events()).map(({ number, type, id, name, progress }) => [
    number,
    type,
    id,
    name,
    progress,
  ]);
  expect(said).toEqual([
    [1, 'published', '', 'imported', '{"rows":3}'],
    [2, 'published', '', '__proto__', 'null'],
  ]);
});

itRefusesWrongTypes(q, {
  keys: ['meta', 'events'],
  prepare: async () => () => q.engine.admin.publish(QUEUE, 'imported', '1'),
});
