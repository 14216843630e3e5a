import type { Redis } from 'ioredis';

const SIZE: Record<string, (control: Redis, key: string) => Promise<number>> = {
  string: async () => 1,
  list: (control, key) => control.llen(key),
  set: (control, key) => control.scard(key),
  zset: (control, key) => control.zcard(key),
  hash: (control, key) => control.hlen(key),
  // An event stream of bounded length belongs to a queue, not to its jobs.
  stream: async () => 1,
};

/** Counts the values, members and fields in all keys of a server, to find what jobs leave behind. */
export async function elements(control: Redis): Promise<number> {
  let sum = 0;
  let cursor = '0';
  do {
    const [next, keys] = await control.scan(cursor, 'COUNT', 1_000);
    for (const key of keys) sum += (await SIZE[await control.type(key)]?.(control, key)) ?? 0;
    cursor = next;
  } while (cursor !== '0');
  return sum;
}
