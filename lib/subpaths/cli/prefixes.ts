import { Redis } from 'ioredis';

/** A Redis that other programs use too may have many keys. */
const PATIENCE_MS = 2_000;
/** Prefixes that the advice names. */
const MOST_NAMED = 10;

/**
 * The prefixes that have queues in this Redis, or as many as are found in two seconds. None if the user may not look for keys. In a
 * cluster, those of one node.
 */
async function prefixesIn(url: string): Promise<string[]> {
  const client = new Redis(url, {
    lazyConnect: true,
    maxRetriesPerRequest: 1,
    retryStrategy: () => null,
    connectTimeout: PATIENCE_MS,
    commandTimeout: PATIENCE_MS,
  });
  client.on('error', () => undefined);
  const found = new Set<string>();
  try {
    await client.connect();
    const since = performance.now();
    let cursor = '0';
    do {
      // oxlint-disable-next-line no-await-in-loop -- page after page
      const [next, keys] = await client.scan(cursor, 'MATCH', '{*}:queues', 'COUNT', 1_000);
      for (const key of keys) found.add(key.slice(1, -'}:queues'.length));
      cursor = next;
    } while (cursor !== '0' && performance.now() - since < PATIENCE_MS);
  } catch {
    // It only helps to find a wrong `--prefix`.
  } finally {
    client.disconnect();
  }
  return [...found].toSorted();
}

/** Advice to a person whose `--prefix` has no queues. */
export async function prefixAdvice(url: string): Promise<string> {
  const found = await prefixesIn(url);
  if (found.length === 0) return 'check --prefix';
  const more = found.length > MOST_NAMED ? ', …' : '';
  return `use --prefix: there are queues of ${found.slice(0, MOST_NAMED).join(', ')}${more}`;
}
