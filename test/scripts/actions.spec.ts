import { beforeEach, expect, it } from 'vitest';
import type { RedisStore } from '#lib/engine/redis-store.js';
import { processKeys } from '#lib/engine/keys.js';
import { actions } from '#lib/engine/scripts/processes.js';
import { useQueue } from './support.js';
import { changingNothing, itRefusesWrongTypes } from './unchanged.js';

const q = useQueue();

const run = (
  args: { before?: string; actor?: string; queue?: string; limit?: number; most?: number } = {},
) => {
  const { store } = q.engine as unknown as { store: RedisStore };
  const all = { before: '', actor: '', queue: '', limit: 10, most: 5, ...args };
  return store.run(actions, processKeys(q.redis.prefix), all);
};
const ids = async (args?: Parameters<typeof run>[0]) => {
  const { entries, next } = await run(args);
  return [...entries.map(([id]) => id), next];
};
const add = (id: string, ...fields: string[]) => q.admin.xadd(q.key('actions'), id, ...fields);

beforeEach(async () => {
  await add('1-0', 'actor', 'ada', 'queue', 'q');
  await add('1-1', 'actor', 'bob', 'queue', 'q');
  await add('2-0', 'queue', 'other', 'actor', 'ada');
  await add('3-0', 'foreign', 'entry');
});

it('returns entries, the newest first, and where to continue', async () => {
  expect(await ids()).toEqual(['3-0', '2-0', '1-1', '1-0', '']);
  expect(await ids({ limit: 2 })).toEqual(['3-0', '2-0', '2-0']);
  expect(await ids({ before: '2-0' })).toEqual(['1-1', '1-0', '']);
  expect(await ids({ before: '1-0' })).toEqual(['']);
});

it('returns those of an actor and a queue, and examines no more than it may', async () => {
  expect(await ids({ actor: 'ada' })).toEqual(['2-0', '1-0', '']);
  expect(await ids({ actor: 'ada', queue: 'q' })).toEqual(['1-0', '']);
  expect(await ids({ actor: 'bob', most: 2 })).toEqual(['2-0']);
  expect(await ids({ actor: 'bob', most: 2, before: '2-0' })).toEqual(['1-1', '1-0']);
});

it('changes nothing', async () => {
  expect((await changingNothing(q, () => run())).entries).toHaveLength(4);
});

itRefusesWrongTypes(q, {
  keys: actions.keys,
  async prepare() {
    return () => run();
  },
});
