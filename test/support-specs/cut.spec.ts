import type { Socket } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.js';
import { startCut } from '../support/cut.js';
import { ByteLimit, Lane } from '../support/cut/lane.js';
import { encodeRequest, RequestSplitter } from '../support/cut/requests.js';
import { useRedis } from '../support/redis.js';
import { until, within } from '../support/wait.js';

/** The error of ioredis for a request whose connection broke and that it may not send again. */
const GIVEN_UP = /max retries per request|Connection is closed/;

describe('the proxy that breaks connections', () => {
  const redis = useRedis({ rights: 'all' });
  const key = () => `{${redis.prefix}:mail}:jobs`;

  async function viaCut(options: RedisOptions = {}) {
    const cut = await startCut(redis.url);
    const client = new Redis(cut.url, { retryStrategy: () => 5, ...options });
    client.on('error', () => {});
    atEnd(() => client.disconnect());
    await client.ping();
    return { cut, client };
  }

  it('passes everything on unchanged', async () => {
    const { cut, client } = await viaCut();
    const big = 'x'.repeat(300_000);
    await client.hset(key(), 'a', big);
    expect(await client.hget(key(), 'a')).toBe(big);
    expect(cut.counters.accepted).toBe(1);
    expect(cut.connections[0]!.bytes.up).toBeGreaterThan(300_000);
    expect(cut.connections[0]!.bytes.down).toBeGreaterThan(300_000);
  });

  it('limits the bandwidth of each direction, which all connections share', async () => {
    const { cut, client } = await viaCut();
    const other = client.duplicate();
    atEnd(() => other.disconnect());
    await other.ping();
    cut.throttle({ up: 1_000_000, down: 2_000_000 });
    const half = 'x'.repeat(200_000);
    const took = async (act: () => Promise<unknown>) => {
      const since = performance.now();
      await act();
      return performance.now() - since;
    };
    const up = await took(() => Promise.all([client.hset(key(), 'a', half), other.hset(key(), 'b', half)]));
    const down = await took(() => Promise.all([client.hget(key(), 'a'), other.hget(key(), 'b')]));
    expect(up).toBeGreaterThan(390);
    expect(down).toBeGreaterThan(190);
    cut.throttle({});
    expect(await took(() => client.hget(key(), 'a'))).toBeLessThan(150);
    expect(await client.hget(key(), 'a')).toBe(half);
  });

  it('loses the reply of one request that has run, and no other', async () => {
    const { cut, client } = await viaCut({ maxRetriesPerRequest: 0 });
    const rule = cut.cutOnReply('lost-one');
    const before = client.hincrby(key(), 'before', 1);
    const lost = client.hincrby(key(), 'lost-one', 1);
    const behind = client.hincrby(key(), 'behind', 1);
    expect(await before).toBe(1);
    await expect(lost).rejects.toThrow(GIVEN_UP);
    await expect(behind).rejects.toThrow(GIVEN_UP);
    await rule.done;
    expect(rule.hits).toBe(1);
    expect(cut.counters.cuts).toBe(1);
    expect(await redis.admin.hgetall(key())).toEqual({ before: '1', 'lost-one': '1' });
    expect(await client.hincrby(key(), 'lost-one', 1)).toBe(2);
  });

  it('finds a request that comes in pieces, by its text', async () => {
    const { cut, client } = await viaCut({ maxRetriesPerRequest: 0 });
    const big = 'x'.repeat(500_000);
    const rule = cut.cutOnReply(
      (words) => words[0]?.toLowerCase() === 'hset' && words[3]?.length === big.length,
    );
    await expect(client.hset(key(), 'a', big)).rejects.toThrow(GIVEN_UP);
    await rule.done;
    expect(await redis.admin.hstrlen(key(), 'a')).toBe(big.length);
  });

  it('cuts the requested number of replies', async () => {
    const { cut, client } = await viaCut();
    const rule = cut.cutOnReply('resent', 2);
    // ioredis sends it again after each cut: this is the doubling that our own client must not do.
    expect(await client.hincrby(key(), 'resent', 1)).toBe(3);
    await rule.done;
    expect(cut.counters).toMatchObject({ accepted: 3, cuts: 2 });
  });

  it('cuts one connection only, found by what it sends', async () => {
    const { cut, client } = await viaCut({ maxRetriesPerRequest: 0 });
    const other = client.duplicate();
    atEnd(() => other.disconnect());
    const connection = cut.carrying('the-name');
    await client.client('SETNAME', 'the-name');
    const rule = (await connection).cutOnReply('hincrby');
    expect(await other.hincrby(key(), 'n', 1)).toBe(1);
    await expect(client.hincrby(key(), 'n', 1)).rejects.toThrow(GIVEN_UP);
    await rule.done;
    expect(await other.hincrby(key(), 'n', 1)).toBe(3);
  });

  it.each([1, 7, 20])('cuts after %i bytes on the way up: the request is not run', async (bytes) => {
    const { cut, client } = await viaCut({ maxRetriesPerRequest: 0 });
    const limit = cut.cutAfterBytes('up', bytes);
    await expect(client.hincrby(key(), 'n', 1)).rejects.toThrow(GIVEN_UP);
    await limit.done;
    expect(await redis.admin.hget(key(), 'n')).toBeNull();
  });

  it.each([1, 2])('cuts after %i bytes on the way down: the request has run', async (bytes) => {
    const { cut, client } = await viaCut({ maxRetriesPerRequest: 0 });
    const limit = cut.cutAfterBytes('down', bytes);
    await expect(client.hincrby(key(), 'n', 1)).rejects.toThrow(GIVEN_UP);
    await limit.done;
    expect(await redis.admin.hget(key(), 'n')).toBe('1');
  });

  it('delivers nothing after the byte at which it cuts, although the sockets are still open', () => {
    const written: string[] = [];
    const socket = { write: (chunk: Buffer) => written.push(chunk.toString()) } as unknown as Socket;
    const limit = new ByteLimit(6);
    const lane = new Lane(
      socket,
      () => [limit],
      () => {},
    );
    for (const text of ['four', 'more', 'lost']) lane.push(Buffer.from(text));
    expect(written).toEqual(['four', 'mo']);
  });

  it('delays both ways, in order', async () => {
    const { cut, client } = await viaCut();
    cut.delay(40);
    const started = performance.now();
    const replies = await Promise.all([client.hincrby(key(), 'n', 1), client.hincrby(key(), 'n', 1)]);
    // Timers may fire a millisecond early.
    expect(performance.now() - started).toBeGreaterThanOrEqual(78);
    expect(replies).toEqual([1, 2]);
  });

  it('goes silent for open connections, passes new ones, and delivers the held bytes', async () => {
    const { cut, client } = await viaCut();
    cut.blackhole();
    const held = client.hincrby(key(), 'n', 1);
    const fresh = client.duplicate();
    atEnd(() => fresh.disconnect());
    expect(await fresh.hget(key(), 'n')).toBeNull();
    expect(client.status).toBe('ready');
    await cut.heal();
    expect(await within(held)).toBe(1);
    expect(cut.counters.accepted).toBe(2);
  });

  it('delivers a request whose sender has given up', async () => {
    const { cut, client } = await viaCut({ maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false });
    cut.blackhole();
    const given = client.hincrby(key(), 'late', 1).catch(() => 'given up');
    await until(() => cut.counters.requests > 0 && client.stream.writableLength === 0);
    client.disconnect();
    await cut.heal();
    await until(async () => (await redis.admin.hget(key(), 'late')) === '1', {
      what: 'the late request arrives',
    });
    expect(await within(given)).toBe('given up');
  });

  it('refuses new connections, and takes them again on the same port', async () => {
    const { cut, client } = await viaCut();
    cut.refuse();
    const refused = client.duplicate({ retryStrategy: () => null });
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => refused.once('error', resolve));
    expect(error.code).toBe('ECONNREFUSED');
    expect(await client.ping()).toBe('PONG');
    cut.drop();
    const waiting = client.ping();
    await cut.heal();
    expect(await within(waiting)).toBe('PONG');
  });
});

describe('cutting a stream into requests', () => {
  it('gives whole requests, however the bytes come', () => {
    const requests = [['PING'], ['SET', 'k', 'a\r\n*1\r\n$4\r\nPING\r\n'], ['HSET', 'ключ', '', '🦆']].map(
      encodeRequest,
    );
    const stream = Buffer.concat(requests);
    for (let size = 1; size <= stream.length; size++) {
      const splitter = new RequestSplitter();
      const got: Buffer[] = [];
      for (let at = 0; at < stream.length; at += size)
        got.push(...splitter.push(stream.subarray(at, at + size)));
      expect(got).toEqual(requests);
    }
  });
});
