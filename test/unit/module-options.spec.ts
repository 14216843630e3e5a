import { InvalidOptionError, InvalidQueueNameError } from '#lib/errors.js';
import { collectFaults, refuse } from '#lib/options/check.js';
import { DEFAULTS } from '#lib/options/job-options.js';
import {
  resolveModuleOptions,
  resolveQueueOptions,
  type QueueModuleOptions,
  type QueueOptions,
} from '#lib/options/module-options.js';
import { resolveNamedOptions, type NamedModuleOptions } from '#lib/options/named-options.js';
import { checkProcessorOptions } from '#lib/options/worker-options.js';
import { describe, expect, it } from 'vitest';

const LOG = { failures: true, deaths: true, start: true, stop: true };
const root = (options: unknown) => resolveModuleOptions(options as QueueModuleOptions);
const queue = (options: unknown, module: unknown = {}) =>
  resolveQueueOptions(options as QueueOptions, root(module));

describe('resolveModuleOptions', () => {
  it('fills in every default, in ms', () => {
    const defaults = {
      connection: 'redis://localhost:6379',
      prefix: 'godwit',
      role: 'both',
      autoStart: true,
      log: LOG,
      enqueue: { timeoutMs: 5_000, isBound: false, maxBuffered: 20_000 },
      maxPayloadBytes: 1_048_576,
      payloads: 'strict',
      lease: { leaseMs: 8_000, maxStalls: 5, maxBlockMs: 60_000 },
      logs: { max: 100 },
      globalEnhancers: [],
      shutdown: { timeoutMs: 25_000, graceMs: 1_000 },
      owner: 'app',
      wrap: [],
      defaults: {},
      events: { max: 10_000, ageMs: null, maxBytes: 67_108_864, results: false },
      dead: { max: 10_000, ageMs: 90 * 86_400_000, maxBytes: 268_435_456 },
      progress: { maxBytes: 67_108_864 },
      completed: { max: 100_000 },
      limits: new Map(),
      upkeepMs: 60_000,
      history: false,
      durability: null,
      unknownJob: 'wait',
      unknownJobTimeoutMs: 86_400_000,
    };
    expect(resolveModuleOptions()).toEqual(defaults);
    expect(root({})).toEqual(defaults);
    expect(
      root({ lease: {}, shutdown: {}, logs: {}, dead: {}, events: true, defaults: {}, prefix: undefined }),
    ).toEqual(defaults);
  });

  it('takes every option', () => {
    const options: QueueModuleOptions = {
      connection: { host: 'redis', port: 6_380 },
      prefix: 'shop.eu-1_A',
      role: 'worker',
      autoStart: false,
      log: { deaths: false },
      enqueueTimeout: '2s',
      enqueueBuffer: 500,
      maxPayloadBytes: 10,
      payloads: 'json',
      lease: { duration: '20s', maxStalls: 0 },
      shutdown: { timeout: 0, grace: '5s' },
      logs: { max: 7 },
      schedules: { owner: 'shop.eu-1_A' },
      enhancers: { global: ['guards', 'pipes'] },
      defaults: { attempts: 5, retention: '1h' },
      events: { max: 500, age: '7d', results: true },
      dead: { max: 0, age: '1d' },
      completed: { max: 7 },
      upkeep: { interval: '5m' },
      limits: { api: { concurrency: 1 } },
      durability: 'replicated',
    };
    expect(resolveModuleOptions(options)).toEqual({
      connection: { host: 'redis', port: 6_380 },
      prefix: 'shop.eu-1_A',
      role: 'worker',
      autoStart: false,
      log: { ...LOG, deaths: false },
      enqueue: { timeoutMs: 2_000, isBound: true, maxBuffered: 500 },
      maxPayloadBytes: 10,
      payloads: 'json',
      lease: { leaseMs: 20_000, maxStalls: 0, maxBlockMs: 60_000 },
      logs: { max: 7 },
      globalEnhancers: ['guards', 'pipes'],
      shutdown: { timeoutMs: 0, graceMs: 5_000 },
      owner: 'shop.eu-1_A',
      wrap: [],
      defaults: { attempts: 5, retentionMs: 3_600_000 },
      events: { max: 500, ageMs: 7 * 86_400_000, maxBytes: 67_108_864, results: true },
      dead: { max: 0, ageMs: 86_400_000, maxBytes: 268_435_456 },
      progress: { maxBytes: 67_108_864 },
      completed: { max: 7 },
      limits: new Map([['api', { concurrency: 1 }]]),
      upkeepMs: 300_000,
      history: false,
      durability: { replicas: 1, timeoutMs: 1_000 },
      unknownJob: 'wait',
      unknownJobTimeoutMs: 86_400_000,
    });
  });

  it.each([
    [{ events: false }, 0],
    [{ events: { max: 0 } }, 0],
    [{ events: true }, 10_000],
    [{ events: { max: 7 } }, 7],
    [{ events: { age: '1h' } }, 10_000],
  ])('reads %j as %d events kept', (options, max) => {
    expect(root(options).events.max).toBe(max);
  });

  const name = '1 to 64 characters out of A-Z a-z 0-9 . _ -';
  it.each([
    [{ conection: 'redis://x' }, 'forRoot().conection is not an option; did you mean connection?'],
    [{ prefix: '' }, `forRoot().prefix must be ${name}, got "" (string)`],
    [{ prefix: 'a:b' }, `forRoot().prefix must be ${name}, got "a:b" (string)`],
    [{ prefix: '{a}' }, `forRoot().prefix must be ${name}, got "{a}" (string)`],
    [{ prefix: 'x'.repeat(65) }, `forRoot().prefix must be ${name}, got "xxx`],
    [
      { role: 'consumer' },
      `forRoot().role must be one of 'producer', 'worker', 'both', got "consumer" (string)`,
    ],
    [
      { durability: 'safe' },
      `forRoot().durability must be 'local', 'replicated', or an object with replicas and timeout, got "safe" (string)`,
    ],
    [{ durability: null }, 'forRoot().durability must be'],
    [{ durability: ['replicated'] }, 'forRoot().durability must be'],
    [
      { durability: { replicas: 0 } },
      'forRoot().durability.replicas must be an integer from 1 to 100, got 0 (number)',
    ],
    [
      { durability: { timeout: 0 } },
      'forRoot().durability.timeout must be a duration from 1 ms to 2147483647 ms, got 0 (number)',
    ],
    [{ durability: { replica: 1 } }, 'forRoot().durability.replica is not an option; did you mean replicas?'],
    [{ autoStart: 1 }, 'forRoot().autoStart must be true or false, got 1 (number)'],
    [
      { enqueueTimeout: 0 },
      'forRoot().enqueueTimeout must be a duration from 1 ms to 2147483647 ms, got 0 (number)',
    ],
    [
      { enqueueTimeout: '30d' },
      'forRoot().enqueueTimeout must be a duration from 1 ms to 2147483647 ms, got "30d"',
    ],
    [
      { maxPayloadBytes: 0 },
      'forRoot().maxPayloadBytes must be an integer from 1 to 67108864, got 0 (number)',
    ],
    [
      { maxPayloadBytes: '1mb' },
      'forRoot().maxPayloadBytes must be an integer from 1 to 67108864, got "1mb" (string)',
    ],
    [
      { lease: { duration: 50 } },
      'forRoot().lease.duration must be a duration from 100 ms to 3600000 ms, got 50',
    ],
    [
      { lease: { maxStalls: -1 } },
      'forRoot().lease.maxStalls must be an integer from 0 to 1000, got -1 (number)',
    ],
    [{ lease: '8s' }, 'forRoot().lease must be an object, got "8s" (string)'],
    [
      { shutdown: { timeout: '-1s' } },
      "forRoot().shutdown.timeout must be a duration in ms or like '10s', not negative",
    ],
    [
      { shutdown: { timeout: '25 parsecs' } },
      "forRoot().shutdown.timeout must be a duration in ms or like '10s', got",
    ],
    [{ shutdown: { gracee: 1 } }, 'forRoot().shutdown.gracee is not an option; did you mean grace?'],
    [{ log: 5 }, 'forRoot().log must be true, false or an object, got 5 (number)'],
    [{ events: 5 }, 'forRoot().events must be true, false or an object, got 5 (number)'],
    [
      { events: { max: 1.5 } },
      'forRoot().events.max must be an integer from 0 to 10000000, got 1.5 (number)',
    ],
    [{ events: { results: 1 } }, 'forRoot().events.results must be true or false, got 1 (number)'],
    [{ events: { age: 'x' } }, 'forRoot().events.age must be a duration in ms or like'],
    [
      { completed: { max: -1 } },
      'forRoot().completed.max must be an integer from 0 to 10000000, got -1 (number)',
    ],
    [
      { completed: { age: '1h' } },
      'forRoot().completed.age is not an option; use the option retention of a job for completed jobs',
    ],
    [{ completed: 5 }, 'forRoot().completed must be an object, got 5 (number)'],
    [{ upkeep: { interval: 99 } }, 'forRoot().upkeep.interval must be a duration from 100 ms to'],
    [{ upkeep: { interval: '25d' } }, 'forRoot().upkeep.interval must be a duration from 100 ms to'],
    [{ upkeep: false }, 'forRoot().upkeep must be an object, got false (boolean)'],
    [{ dead: { max: -1 } }, 'forRoot().dead.max must be an integer from 0 to 10000000, got -1 (number)'],
    [{ dead: { age: 'x' } }, 'forRoot().dead.age must be a duration in ms or like \'10s\', got "x" (string)'],
    [
      { defaults: { attempts: -1 } },
      'forRoot().defaults.attempts must be an integer from 1 to 9007199254740991, got -1 (number)',
    ],
    [null, 'forRoot() must be an object, got null (null)'],
  ])('refuses %j', (options, message) => {
    expect(() => root(options)).toThrow(InvalidOptionError);
    expect(() => root(options)).toThrow(message);
  });

  it('reports all faults at once on request', () => {
    const options = {
      role: 'x',
      connection: { keyPrefix: 'a:' },
      shutdown: { timeout: -1 },
      defaults: { backoff: 'x', atempts: 3 },
      dead: 5,
    } as unknown as QueueModuleOptions;
    const { faults } = collectFaults((report) => resolveModuleOptions(options, report));
    expect(faults.map((fault) => fault.split(' ')[0])).toEqual([
      'forRoot().role',
      'forRoot().connection.keyPrefix',
      'forRoot().shutdown.timeout',
      'forRoot().defaults.atempts',
      'forRoot().dead',
      'forRoot().defaults.backoff',
    ]);
  });

  it('is not polluted, and pollutes nothing', () => {
    const hostile = '{"__proto__":{"prefix":"evil","polluted":1},"lease":{"__proto__":{"maxStalls":9}}}';
    const { value, faults } = collectFaults((report) => resolveModuleOptions(JSON.parse(hostile), report));
    expect(faults).toHaveLength(2);
    expect(value).toMatchObject({ prefix: 'godwit', lease: { maxStalls: 5 } });
    expect(() => root({ constructor: { prototype: {} } })).toThrow('forRoot().constructor is not an option');
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

describe('resolveQueueOptions', () => {
  it('inherits everything from the module', () => {
    const module = {
      defaults: { attempts: 9 },
      events: { max: 5, age: '1h' },
      dead: { max: 6, age: 7, maxBytes: 9 },
      progress: { maxBytes: 8 },
      completed: { max: 9 },
      maxPayloadBytes: 8,
      payloads: 'strict',
      durability: { replicas: 2, timeout: '3s' },
      lease: { maxStalls: 2 },
      logs: { max: 3 },
      log: { start: false },
    };
    expect(queue({ name: 'email' }, module)).toEqual({
      name: 'email',
      lease: { leaseMs: 8_000, maxStalls: 2, maxBlockMs: 60_000 },
      shutdown: { timeoutMs: 25_000, graceMs: 1_000 },
      logs: { max: 3 },
      log: { ...LOG, start: false },
      policy: { ...DEFAULTS, limitsAttempts: true, attempts: 9 },
      maxPayloadBytes: 8,
      payloads: 'strict',
      events: { max: 5, ageMs: 3_600_000, maxBytes: 67_108_864, results: false },
      dead: { max: 6, ageMs: 7, maxBytes: 9 },
      progress: { maxBytes: 8 },
      completed: { max: 9 },
      durability: { replicas: 2, timeoutMs: 3_000 },
      unknownJob: 'wait',
      unknownJobTimeoutMs: 86_400_000,
    });
  });

  it('overrides the module', () => {
    const own = {
      name: 'email',
      defaults: { attempts: 1, timeout: '1s' },
      events: { max: 1 },
      dead: { max: 2 },
      completed: { max: 4 },
      durability: 'local',
      lease: { duration: '1m' },
      shutdown: { timeout: '4m' },
      logs: { max: 0 },
      log: false,
    };
    const module = {
      lease: { duration: '2s', maxStalls: 1 },
      defaults: { attempts: 9, retention: 5 },
      dead: { max: 6, age: 7, maxBytes: 9 },
      progress: { maxBytes: 8 },
      durability: 'replicated',
    };
    expect(queue({ ...own, maxPayloadBytes: 3, payloads: 'json' }, module)).toEqual({
      name: 'email',
      lease: { leaseMs: 60_000, maxStalls: 1, maxBlockMs: 60_000 },
      shutdown: { timeoutMs: 240_000, graceMs: 1_000 },
      logs: { max: 0 },
      log: { failures: false, deaths: false, start: false, stop: false },
      policy: { ...DEFAULTS, limitsAttempts: true, attempts: 1, timeoutMs: 1_000, retentionMs: 5 },
      maxPayloadBytes: 3,
      payloads: 'json',
      events: { max: 1, ageMs: null, maxBytes: 67_108_864, results: false },
      dead: { max: 2, ageMs: 7, maxBytes: 9 },
      progress: { maxBytes: 8 },
      completed: { max: 4 },
      durability: null,
      unknownJob: 'wait',
      unknownJobTimeoutMs: 86_400_000,
    });
  });

  it.each([
    [undefined, true, 10_000],
    [undefined, false, 0],
    [undefined, { max: 5 }, 5],
    [false, { max: 5 }, 0],
    [true, { max: 5 }, 5],
    [true, false, 10_000],
    [{ max: 0 }, true, 0],
    [{ max: 3 }, false, 3],
    [{ age: '1h' }, { max: 5 }, 5],
    [{ age: '1h' }, false, 10_000],
  ])('with events %j under a module with %j keeps %d', (own, module, max) => {
    expect(queue({ name: 'q', events: own }, { events: module }).events.max).toBe(max);
  });

  it.each([
    [
      { name: 'email', retries: 3 },
      "registerQueue('email').retries is not an option; use the option attempts",
    ],
    [
      { name: 'email', defaults: { atempts: 3 } },
      "registerQueue('email').defaults.atempts is not an option; did you mean attempts?",
    ],
    [
      { name: 'email', dead: { max: 1.5 } },
      "registerQueue('email').dead.max must be an integer from 0 to 10000000, got 1.5",
    ],
    [
      { name: 'email', log: { start: false } },
      "registerQueue('email').log.start is not an option; these lines are of the whole process: set it in forRoot({ log })",
    ],
    [undefined, 'registerQueue() must be an object, got undefined'],
    ['email', 'registerQueue() must be an object, got "email" (string)'],
  ])('refuses %j', (options, message) => {
    expect(() => queue(options)).toThrow(InvalidOptionError);
    expect(() => queue(options)).toThrow(message);
  });

  it.each([{}, { name: undefined }, { name: '' }, { name: 'a b' }, { name: 7 }, { name: 'x'.repeat(129) }])(
    'refuses the name of %j',
    (options) => {
      expect(() => queue(options)).toThrow(InvalidQueueNameError);
      expect(() => queue(options)).toThrow(
        'a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, got ',
      );
    },
  );

  it('reports all faults at once on request', () => {
    const options = { name: 'a b', defaults: { attempts: 0 } };
    const { faults } = collectFaults((report) => resolveQueueOptions(options, root({}), report));
    expect(faults).toEqual([
      'registerQueue().defaults.attempts must be an integer from 1 to 9007199254740991, got 0 (number)',
      'registerQueue().name: a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, got "a b" (string)',
    ]);
  });
});

describe('checkProcessorOptions', () => {
  const path = "@Processor('email') of EmailProcessor";

  it('runs 10 at once by default', () => {
    expect(checkProcessorOptions(undefined, path)).toEqual({ concurrency: 10 });
    expect(checkProcessorOptions({}, path)).toEqual({ concurrency: 10 });
    expect(checkProcessorOptions({ concurrency: 10_000 }, path)).toEqual({ concurrency: 10_000 });
  });

  it.each([0, -1, 1.5, Number.NaN, Infinity, 10_001, '5', null])(
    'refuses a concurrency of %s',
    (concurrency) => {
      const check = () => checkProcessorOptions({ concurrency } as { concurrency: number }, path);
      expect(check).toThrow(InvalidOptionError);
      expect(check).toThrow(`${path}.concurrency must be an integer from 1 to 10000, got `);
    },
  );

  it('refuses unknown options', () => {
    const check = () => checkProcessorOptions({ concurency: 5 } as object, path);
    expect(check).toThrow(`${path}.concurency is not an option; did you mean concurrency?`);
    const { faults } = collectFaults((report) => checkProcessorOptions([] as object, path, report));
    expect(faults).toEqual([`${path} must be an object, got [] (array)`]);
  });
});

describe('resolveNamedOptions', () => {
  it('takes every option of its queues from its own options, and those of the process from the module', () => {
    const own: Required<NamedModuleOptions> = {
      connection: 'redis://reports:6380',
      prefix: 'reports',
      defaults: { attempts: 1 },
      backoffs: { gentle: 5 },
      lease: { duration: '20s' },
      shutdown: { timeout: '1s' },
      logs: { max: 0 },
      maxPayloadBytes: 5,
      payloads: 'json',
      events: { max: 1 },
      progress: { maxBytes: 9 },
      dead: { max: 2 },
      completed: { max: 3 },
      durability: 'replicated',
      unknownJob: 'dead',
      unknownJobTimeout: '1h',
      limits: { api: { concurrency: 1 } },
    };
    const main = resolveModuleOptions({ prefix: 'main', lease: { maxStalls: 1 }, unknownJob: 'retry' });
    const resolved = resolveNamedOptions('reports', own, main, refuse);
    const lease = { leaseMs: 20_000, maxStalls: 1, maxBlockMs: 60_000 };
    expect(resolved).toEqual({ ...resolveModuleOptions(own), lease });
  });
});
