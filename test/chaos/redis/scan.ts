import type { Redis } from 'ioredis';
import { LETTERED_JOBS, QueueKeys } from '#lib/engine/keys.js';
import { PREFIX, QUEUE } from '../plan.js';

/** Finds where every job of the queue is by reading all keys, without scripts of the engine. */
export interface QueueScan {
  /** Ids in a place from which they will run. */
  readonly runnable: readonly string[];
  /** Nonces of ids that still exist, from their bodies. */
  readonly nonces: ReadonlyMap<string, number>;
  readonly dead: number;
  readonly processed: number;
  readonly deadCounter: number;
  readonly keys: readonly string[];
  /** Every job that is not in exactly one place with a body, as a sentence. */
  readonly faults: readonly string[];
}

const MAX_FAULTS = 20;

export async function scanQueue(redis: Redis): Promise<QueueScan> {
  const keys = new QueueKeys(PREFIX, QUEUE);
  const { fixed } = keys;
  const all = await allKeys(redis);
  const places = new Map<string, string[]>();
  const put = (ids: readonly string[], place: string) => {
    for (const id of ids) places.set(id, [...(places.get(id) ?? []), place]);
  };
  for (const place of ['wait', 'suspects'] as const) put(await redis.lrange(fixed[place], '0', '-1'), place);
  for (const place of ['prioritized', 'delayed', 'dead', 'completed'] as const) {
    put(await redis.zrange(fixed[place], '0', '-1'), place);
  }
  const leased = new Set(await redis.zrange(fixed.workers, '0', '-1'));
  const faults: string[] = [];
  for (const key of all.filter((name) => name.startsWith(keys.active('')))) {
    const worker = key.slice(keys.active('').length);
    put(await redis.smembers(key), `active of ${worker}`);
    if (!leased.has(worker)) faults.push(`worker ${worker} holds jobs without a lease`);
  }
  const nonces = new Map<string, number>();
  for (const kind of ['jobs', ...LETTERED_JOBS] as const)
    for (const [id, nonce] of await bodies(redis, fixed[kind])) nonces.set(id, nonce);
  for (const [id, found] of places) {
    if (found.length > 1) faults.push(`${id} is in ${found.join(' and ')}`);
    if (!nonces.has(id)) faults.push(`${id} in ${found[0]} has no body`);
  }
  for (const id of nonces.keys()) if (!places.has(id)) faults.push(`${id} has a body and is in no place`);
  const runs = (place: string) => place !== 'dead' && place !== 'completed';
  return {
    runnable: [...places].filter(([id, found]) => found.some(runs) && nonces.has(id)).map(([id]) => id),
    nonces,
    dead: [...places.values()].filter((found) => found.includes('dead')).length,
    ...(await counters(
      redis,
      all.filter((name) => name.startsWith(keys.stats(''))),
    )),
    keys: all,
    faults: faults.slice(0, MAX_FAULTS),
  };
}

async function allKeys(redis: Redis): Promise<string[]> {
  const found = new Set<string>();
  for (let cursor = '0', first = true; first || cursor !== '0'; first = false) {
    const [next, names] = await redis.scan(cursor, 'COUNT', 1000);
    for (const name of names) found.add(name);
    cursor = next;
  }
  return [...found].toSorted();
}

/** Id → nonce of every body. */
async function bodies(redis: Redis, key: string): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (let cursor = '0', first = true; first || cursor !== '0'; first = false) {
    const [next, pairs] = await redis.hscan(key, cursor, 'COUNT', 1000);
    for (let i = 0; i < pairs.length; i += 2) {
      found.set(pairs[i]!, Number(/"n":(\d+)/.exec(pairs[i + 1]!)?.[1] ?? Number.NaN));
    }
    cursor = next;
  }
  return found;
}

async function counters(redis: Redis, days: readonly string[]) {
  let processed = 0;
  let deadCounter = 0;
  for (const day of days) {
    for (const [field, count] of Object.entries(await redis.hgetall(day))) {
      if (field.startsWith('processed:')) processed += Number(count);
      if (field.startsWith('dead:')) deadCounter += Number(count);
    }
  }
  return { processed, deadCounter };
}
