import { describe, expect, it } from 'vitest';
import type { RedisStore } from '#lib/engine/redis-store.js';
import { auditPage } from '#lib/engine/scripts/audit.js';
import { AUDITED } from '#lib/contract/audit-facts.js';
import { useQueue, WORKER } from './support.js';
import { changingNothing } from './unchanged.js';

const q = useQueue();
const BYTES = 524_288;

/**
 * The engine asks for pages only if there are very many ids, so this test runs the script as the engine's store does.
 */
function pageOf(kind: string, type: string, cursor: string, count: number) {
  const { store } = q.engine as unknown as { store: RedisStore };
  const more = kind === 'active' ? [q.keys.active(WORKER)] : [];
  return store.run(auditPage, q.keys.fixed, { kind, type, cursor, count, bytes: BYTES }, {}, more);
}

/** All ids of a key, read in pages, which change nothing. */
const all = (kind: string, type: string, count: number) => changingNothing(q, () => walk(kind, type, count));

async function walk(kind: string, type: string, count: number): Promise<{ ids: string[]; pages: number }> {
  const ids: string[] = [];
  let cursor = '0';
  let pages = 0;
  do {
    const page = await pageOf(kind, type, cursor, count);
    ids.push(...page.ids);
    ({ cursor } = page);
    pages += 1;
  } while (cursor !== '0');
  return { ids, pages };
}

const IDS = Array.from({ length: 300 }, (_, i) => `id-${i}`);

async function fill(): Promise<void> {
  for (const kind of ['wait', 'suspects'] as const) await q.admin.rpush(q.key(kind), ...IDS);
  for (const kind of ['prioritized', 'grouped', 'slots', 'delayed', 'dead', 'completed'] as const)
    await q.admin.zadd(q.key(kind), ...IDS.flatMap((id, i) => [i, id]));
  await q.admin.sadd(q.key('active'), ...IDS);
  const hashes = AUDITED.filter((kind) => typeOf(kind) === 'hash');
  for (const kind of hashes)
    await q.admin.hset(q.key(kind), Object.fromEntries(IDS.map((id) => [id, 'v'.repeat(99)])));
}

function typeOf(kind: string): string {
  if (kind === 'wait' || kind === 'suspects') return 'list';
  if (['prioritized', 'grouped', 'slots', 'delayed', 'dead', 'completed'].includes(kind)) return 'zset';
  return kind === 'active' ? 'set' : 'hash';
}

it.each([...AUDITED, 'active'])('the pages of %s hold each id once, and nothing else', async (kind) => {
  await fill();
  const { ids, pages } = await all(kind, typeOf(kind), 30);
  expect(ids.toSorted()).toEqual(IDS.toSorted());
  expect(pages).toBeGreaterThan(4);
});

it('the pages of a list are in its order, also if the last one is full', async () => {
  await fill();
  expect(await all('wait', 'list', 75)).toEqual({ ids: IDS, pages: 5 });
  expect(await all('wait', 'list', 90)).toEqual({ ids: IDS, pages: 4 });
});

describe('refused', () => {
  it.each([...AUDITED, 'active'] as const)('if %s is of another type', async (kind) => {
    await q.admin.set(q.key(kind), 'not ours');
    await expect(changingNothing(q, () => pageOf(kind, typeOf(kind), '0', 10))).rejects.toMatchObject({
      code: 'GODWIT_REDIS_REFUSED',
      reply: 'WRONGTYPE',
    });
  });
});

it.each(['jobsA', 'failures'])('a page of %s has fewer ids if their values are large', async (kind) => {
  const large = Object.fromEntries(IDS.map((id) => [id, 'v'.repeat(10_000)]));
  await q.admin.hset(q.key(kind as 'failures'), large);
  const first = await pageOf(kind, 'hash', '0', 1_000);
  // Redis reads whole buckets, and those of the first step before their size is known.
  expect(first.ids.length * 10_000).toBeGreaterThan(BYTES / 2);
  expect(first.ids.length * 10_000).toBeLessThan(BYTES * 1.5);
  const { ids, pages } = await all(kind, 'hash', 1_000);
  expect(ids.toSorted()).toEqual(IDS.toSorted());
  expect(pages).toBeGreaterThan(4);
});
