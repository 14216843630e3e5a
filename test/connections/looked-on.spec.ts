import { tracingChannel } from 'node:diagnostics_channel';
import { setImmediate as nextImmediate } from 'node:timers/promises';
import { Redis, type Command } from 'ioredis';
import { expect, it } from 'vitest';
import { Link } from '#lib/engine/wire/link.js';
import { atEnd } from '../support/cleanup.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';

const server = useServer();
const redis = useRedis({ server });

type Send = (command: Command) => Promise<unknown>;

interface Traced {
  readonly command: string;
  readonly args: readonly string[];
  readonly result?: unknown;
  readonly error?: Error;
}

/** A link to Redis; whatever stands before its client comes there once it is up. */
async function linked(standBefore: (send: Send) => Send = (send) => send) {
  const client = new Redis(redis.url, { lazyConnect: true, retryStrategy: () => 1 });
  const link = new Link(
    'command',
    () => client,
    () => undefined,
    undefined,
    undefined,
    20,
  );
  atEnd(() => link.close());
  await link.send('test', 'ping', [], 5_000);
  client.sendCommand = standBefore(client.sendCommand.bind(client) as Send);
  return link;
}

const key = () => `{${redis.prefix}:queue}:jobs`;

it('lets command tracers see commands and replies', async () => {
  const link = await linked();
  const seen: unknown[] = [];
  const channel = tracingChannel<unknown, Traced>('ioredis:command');
  const watch = ({ command, args, result, error }: Traced) =>
    void seen.push([command, args.length, result ?? error?.name]);
  channel.asyncEnd.subscribe(watch as (traced: unknown) => void);
  atEnd(() => channel.asyncEnd.unsubscribe(watch as (traced: unknown) => void));
  expect(await link.send('test', 'hset', [key(), 'id', 'hello'], 5_000)).toBe(1);
  expect(await link.send('test', 'hget', [key(), 'id'], 5_000)).toBe('hello');
  await expect(link.send('test', 'llen', [key()], 5_000)).rejects.toMatchObject({ reply: 'WRONGTYPE' });
  expect(seen).toEqual([
    ['hset', 3, 1],
    ['hget', 2, 'hello'],
    ['llen', 1, expect.any(String)],
  ]);
});

it('takes replies from code that wraps the client, and translates its errors', async () => {
  const answers: Record<string, () => unknown> = {
    hget: () => Promise.resolve('in its place'),
    llen: () => Promise.reject(new Error('not today')),
    exists: () => {
      throw new Error('never');
    },
  };
  const link = await linked((send) => (command) => {
    const answer = answers[command.name];
    return (answer ? answer() : send(command)) as Promise<unknown>;
  });
  const asked = (name: string) => link.send('test', name, [key()], 5_000);
  expect(await asked('hget')).toBe('in its place');
  await expect(asked('llen')).rejects.toThrow('not today');
  await expect(asked('exists')).rejects.toThrow('never');
  expect(await asked('hlen')).toBe(0);
});

it('waits no longer than its timeout for a reply that the wrapper holds back', async () => {
  const link = await linked((send) => async (command) => {
    const answer = await send(command);
    return command.name === 'hlen' ? new Promise<never>(() => undefined) : answer;
  });
  await expect(link.send('test', 'hlen', [key()], 50)).rejects.toMatchObject({
    code: 'GODWIT_REDIS_UNAVAILABLE',
    applied: 'unknown',
  });
});

it('notices a silent server although the event loop is blocked in each turn, and takes late answers for no silence', async () => {
  const link = await linked();
  const block = async () => {
    const end = performance.now() + 300;
    while (performance.now() < end);
    await nextImmediate();
  };
  // Each turn is blocked for longer than a call may take.
  for (let turn = 0; turn < 5; turn++) {
    const answer = link.send('test', 'hlen', [key()], 100);
    await block();
    expect(await answer).toBe(0);
  }
  process.kill(server.pid!, 'SIGSTOP');
  let failed: unknown;
  link.send('test', 'hlen', [key()], 100).catch((error: unknown) => (failed = error));
  for (let turn = 0; turn < 20 && !failed; turn++) await block();
  process.kill(server.pid!, 'SIGCONT');
  expect(failed).toMatchObject({ code: 'GODWIT_REDIS_UNAVAILABLE', applied: 'unknown' });
});
