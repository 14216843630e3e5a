import { InvalidOptionError } from '#lib/errors.js';
import {
  addressOf,
  checkConnection,
  refuseKeyPrefix,
  type ConnectionOption,
  type RedisConnection,
} from '#lib/options/connection.js';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';

const path = 'forRoot().connection';
const check = (value: unknown) => checkConnection(value, path);

const refusalOf = (value: unknown): InvalidOptionError => {
  try {
    check(value);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionError);
    return error as InvalidOptionError;
  }
  throw new Error('was not refused');
};

const make = () => ({}) as never;

describe('checkConnection', () => {
  it.each([
    'redis://localhost:6379',
    'redis://localhost',
    'rediss://user:p%40ss@redis.example:6380/2',
    'REDIS://[::1]:6379?family=6',
  ])('takes the URL %s', (url) => {
    expect(check(url)).toBe(url);
    expect(check({ url, db: 1 })).toEqual({ url, db: 1 });
  });

  it('takes a factory', () => {
    expect(check(make)).toBe(make);
  });

  it('takes ioredis options as a copy', () => {
    const tls = { ca: 'x' };
    const options = { host: 'redis', port: '6380', db: 0, tls, keyPrefix: '', sentinels: [{ host: 'a' }] };
    const checked = check(options);
    expect(checked).toEqual(options);
    expect(checked).not.toBe(options);
    expect((checked as { tls?: unknown }).tls).toBe(tls);
  });

  it.each([
    [{ keyPrefix: 'app:' }, 'forRoot().connection'],
    [{ url: 'redis://localhost?keyPrefix=app:' }, 'forRoot().connection.url'],
    ['redis://localhost?keyPrefix=app:', 'forRoot().connection'],
  ])('refuses the keyPrefix of ioredis in %j', (value, place) => {
    expect(refusalOf(value).message).toBe(
      `${place}.keyPrefix must be left out: use the option "prefix" of forRoot, because ioredis does not add keyPrefix to keys inside scripts`,
    );
  });

  it.each([
    [
      5,
      "forRoot().connection must be a redis:// or rediss:// URL, ioredis options, a function that returns a client, or 'memory', got 5",
    ],
    [null, 'forRoot().connection must be a redis:// or rediss:// URL, ioredis options, a function'],
    [[], 'forRoot().connection must be a redis:// or rediss:// URL, ioredis options, a function'],
    ['', `forRoot().connection must be a redis:// or rediss:// URL, or 'memory', got "" (string)`],
    [
      'localhost:6379',
      `forRoot().connection must be a redis:// or rediss:// URL, or 'memory', got "localhost:6379" (string)`,
    ],
    [
      'http://localhost',
      `forRoot().connection must be a redis:// or rediss:// URL, or 'memory', got "http://localhost" (string)`,
    ],
    [
      { url: 'redis//x' },
      'forRoot().connection.url must be a redis:// or rediss:// URL, got "redis//x" (string)',
    ],
    ['redis://localhost/cache', 'forRoot().connection must be a redis:// or rediss:// URL, or'],
    [{ url: 7 }, 'forRoot().connection.url must be a redis:// or rediss:// URL, got 7 (number)'],
    [{ port: Number.NaN }, 'forRoot().connection.port must be an integer from 0 to 65535, got NaN (number)'],
    [{ port: 70_000 }, 'forRoot().connection.port must be an integer from 0 to 65535, got 70000 (number)'],
    [{ port: '' }, 'forRoot().connection.port must be an integer from 0 to 65535, got "" (string)'],
    [{ port: 'abc' }, 'forRoot().connection.port must be an integer from 0 to 65535, got "abc" (string)'],
    [{ db: -1 }, 'forRoot().connection.db must be an integer from 0 to 1000000, got -1 (number)'],
    [{ duplicate: () => 0 }, 'forRoot().connection is an ioredis client; pass a function that creates one'],
  ])('refuses %j', (value, message) => {
    expect(refusalOf(value).message).toContain(message);
  });

  it.each([
    'http://user:hunter2@localhost',
    'redis//user:hunter2@localhost',
    'user:hunter2@localhost:6379',
    'redis://:hun@ter2/hunter2@@localhost:x',
    'redis://localhost:x?password=hunter2',
    'redis:\n//hunter2@x',
  ])('never shows the password of %j', (url) => {
    for (const value of [url, { url }, { url, password: 'hunter2' }]) {
      const error = refusalOf(value);
      expect(inspect(error, { depth: 9 })).not.toMatch(/hunter2|ter2/);
      expect(error.message).toContain('***');
    }
  });

  it('shows nothing of a client or of other options', () => {
    const password = 'hunter2';
    expect(inspect(refusalOf({ password, options: { password }, duplicate() {} }))).not.toContain('hunter2');
    expect(inspect(refusalOf({ password, port: -1 }))).not.toContain('hunter2');
  });

  it.each([
    [{ hots: 'redis' }, 'forRoot().connection.hots is not an option; did you mean host?'],
    [{ prot: 6380 }, 'forRoot().connection.prot is not an option; did you mean port?'],
    [
      { database: 2 },
      'forRoot().connection.database is not an option; to use an option that only your version of ioredis has',
    ],
    [Object.create({ hots: 'redis' }), 'forRoot().connection.hots is not an option; did you mean host?'],
    [
      { sentinels: [{ hots: 'a' }] },
      'forRoot().connection.sentinels[0].hots is not an option; did you mean host?',
    ],
    [{ sentinels: 'a:26379' }, 'forRoot().connection.sentinels must be a list of { host, port }'],
    [
      { cluster: [{ hots: 'a' }] },
      'forRoot().connection.cluster[0].hots is not an option; did you mean host?',
    ],
    [
      { cluster: [{ host: 'a' }], redisOptions: { pasword: 'hunter2' } },
      'forRoot().connection.redisOptions.pasword is not an option; did you mean password?',
    ],
    [
      'redis://localhost?pasword=hunter2',
      'forRoot().connection.pasword is not an option; did you mean password?',
    ],
  ])('refuses misspelt fields: %j', (value, message) => {
    expect(refusalOf(value).message).toContain(message);
    expect(refusalOf(value).message).not.toContain('hunter2');
  });

  it('reads what a class defines', () => {
    class Config {
      get host() {
        return 'redis.internal';
      }
      get port() {
        return 6380;
      }
    }
    expect(check(new Config())).toEqual({ host: 'redis.internal', port: 6380 });
  });

  it.each<[value: ConnectionOption, address: string | null]>([
    ['redis://localhost', 'localhost:6379, database 0'],
    ['rediss://user:hunter2@redis.example:6380/2', 'redis.example:6380, database 2'],
    ['redis://[::1]?db=3', '[::1]:6379, database 3'],
    [{ password: 'hunter2' }, 'localhost:6379, database 0'],
    [{ url: 'redis://a:1/4', port: 2, password: 'hunter2' }, 'a:2, database 4'],
    [{ host: '::1', db: 5 }, '[::1]:6379, database 5'],
    [{ path: '/run/redis.sock' }, '/run/redis.sock, database 0'],
    [
      { sentinels: [{ host: 'a', port: 1 }, {}], name: 'main' },
      '"main" of the sentinels a:1 and localhost:6379, database 0',
    ],
    [{ cluster: ['redis://:hunter2@a:1', { host: 'b' }] }, 'the cluster of a:1 and b:6379'],
    [make, null],
  ])('shows the address of %j, without its password', (value, address) => {
    expect(addressOf(value as RedisConnection)).toBe(address);
  });

  it('takes memory, in short and in full', () => {
    expect(check('memory')).toEqual({ memory: true });
    expect(check({ memory: true })).toEqual({ memory: true, inProduction: false });
    expect(check({ memory: true, inProduction: true })).toEqual({ memory: true, inProduction: true });
  });

  it.each([
    [
      'Memory',
      `forRoot().connection must be a redis:// or rediss:// URL, or 'memory', got "Memory" (string)`,
    ],
    ['memory://', `forRoot().connection must be a redis:// or rediss:// URL, or 'memory', got`],
    [{ memory: false }, 'forRoot().connection.memory must be true, or left out, got false'],
    [{ memory: 'true' }, 'forRoot().connection.memory must be true, or left out, got "true" (string)'],
    [
      { memory: true, inProduction: 1 },
      'forRoot().connection.inProduction must be true or false, got 1 (number)',
    ],
    [{ memory: true, host: 'x' }, 'forRoot().connection.host'],
    [{ memory: true, inproduction: true }, 'inProduction'],
  ])('refuses %j, which is not quite memory', (value, message) => {
    expect(refusalOf(value).message).toContain(message);
  });

  it('takes a cluster as plain data', () => {
    const connection = {
      cluster: ['redis://a:6379', 'rediss://user:x@b', { host: 'c', port: 7000 }],
      redisOptions: { password: 'x', tls: { ca: 'y' } },
      natMap: { '10.0.0.1:6379': { host: 'd', port: 1 } },
    };
    expect(check(connection)).toEqual(connection);
    expect(structuredClone(check(connection))).toEqual(connection);
    expect(check({ cluster: [{ host: 'c' }] })).toEqual({ cluster: [{ host: 'c', port: 6379 }] });
  });

  it.each([
    [{ cluster: [] }, 'forRoot().connection.cluster must be a list of nodes: URLs or { host, port }'],
    [{ cluster: 'redis://a' }, 'forRoot().connection.cluster must be a list of nodes'],
    [{ cluster: ['a:6379'] }, 'forRoot().connection.cluster[0] must be a redis:// or rediss:// URL'],
    [{ cluster: ['redis://a', 7000] }, 'forRoot().connection.cluster[1] must be a redis:// or rediss:// URL'],
    [
      { cluster: [{ port: 1 }] },
      'forRoot().connection.cluster[0].host must be the name or address of a host',
    ],
    [{ cluster: [{ host: 'a', port: -1 }] }, 'forRoot().connection.cluster[0].port must be an integer'],
    [
      { cluster: [{ host: 'a', password: 'hunter2' }] },
      'forRoot().connection.cluster[0].password is not an option; the options are host, port',
    ],
    [{ cluster: ['redis://a/2'] }, 'cluster[0] must be left out: a cluster has only database 0'],
    [{ cluster: ['redis://a'], redisOptions: { db: 1 } }, 'redisOptions.db must be left out'],
    [{ cluster: ['redis://a'], redisOptions: { host: 'b' } }, 'redisOptions.host must be left out'],
    [{ cluster: ['redis://a'], redisOptions: 5 }, 'redisOptions must be ioredis options'],
    [{ cluster: ['redis://a'], redisOption: {} }, 'redisOption is not an option; did you mean redisOptions?'],
    [{ cluster: ['redis://a'], natMap: [] }, 'natMap must be an object of { host, port } by host:port'],
    [{ cluster: ['redis://a'], natMap: { x: { port: 1 } } }, "natMap['x'].host must be the name"],
    [
      { cluster: ['redis://a'], keyPrefix: 'a' },
      'forRoot().connection.keyPrefix must be left out: use the option "prefix"',
    ],
    [
      { cluster: ['redis://a?keyPrefix=a'] },
      'cluster[0].keyPrefix must be left out: use the option "prefix"',
    ],
    [
      { cluster: ['redis://a'], redisOptions: { keyPrefix: 'a' } },
      'redisOptions.keyPrefix must be left out: use the option "prefix"',
    ],
  ])('refuses the cluster %j', (value, message) => {
    const error = refusalOf(value);
    expect(error.message).toContain(message);
    expect(inspect(error, { depth: 9 })).not.toContain('hunter2');
  });

  it('refuses __proto__', () => {
    const given: unknown = JSON.parse('{"host":"x","__proto__":{"polluted":1}}');
    expect(refusalOf(given).message).toContain('forRoot().connection.__proto__ is not an option');
  });
});

describe('refuseKeyPrefix', () => {
  it('is for the options of any client', () => {
    expect(() => refuseKeyPrefix({}, 'p')).not.toThrow();
    expect(() => refuseKeyPrefix({ keyPrefix: '' }, 'p')).not.toThrow();
    expect(() => refuseKeyPrefix({ keyPrefix: 'a' }, 'p')).toThrow(
      'p.keyPrefix must be left out: use the option "prefix" of forRoot',
    );
  });
});
