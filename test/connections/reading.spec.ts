import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { Link } from '#lib/engine/wire/link.js';
import { atEnd } from '../support/cleanup.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();

it('passes each reply on in the tick in which it is read, also after a reconnect', async () => {
  const client = new Redis(redis.url, { lazyConnect: true, retryStrategy: () => 1 });
  const link = new Link(
    'command',
    () => client,
    () => undefined,
  );
  atEnd(() => link.close());
  const ping = () => link.send('test', 'ping', [], 5_000);
  for (const why of ['is new', 'was cut']) {
    if (why === 'was cut') {
      link.drop('test');
      await ping();
    }
    await ping();
    const said: string[] = [];
    const emit = client.stream.emit.bind(client.stream);
    client.stream.emit = (event: string, ...rest: unknown[]) => (said.push(event), emit(event, ...rest));
    await ping();
    expect([why, said]).toEqual([why, ['data']]);
  }
});
