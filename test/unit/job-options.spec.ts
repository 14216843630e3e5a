import { InvalidJobIdError, InvalidOptionError } from '#lib/errors.js';
import {
  checkJobOptions,
  type JobOptions,
  readDefaults,
  DEFAULTS,
  mergeJobPolicy,
} from '#lib/options/job-options.js';
import { RULES } from '#lib/job/rules.js';
import { refuse } from '#lib/options/check.js';
import { describe, expect, it } from 'vitest';
import { revoked } from '../support/caught.js';

const check = (options: unknown) => checkJobOptions(options as JobOptions, 'add()');

const backoff = () => 5;

describe('checkJobOptions', () => {
  it('returns one shared empty object if nothing is given', () => {
    expect(check(undefined)).toEqual({});
    expect(check(undefined)).toBe(check(undefined));
    expect(Object.isFrozen(check(undefined))).toBe(true);
  });

  it('turns everything into ms and plain values', () => {
    expect(
      check({
        id: 'welcome-ann',
        delay: '10m',
        priority: 2_097_151,
        attempts: 1,
        backoff: ['1s', '1m'],
        timeout: '30s',
        retention: 0,
        expiresIn: '1h',
      }),
    ).toEqual({
      id: 'welcome-ann',
      delayMs: 600_000,
      priority: 2_097_151,
      attempts: 1,
      backoff: [1_000, 60_000],
      timeoutMs: 30_000,
      retentionMs: 0,
      expiresInMs: 3_600_000,
    });
    expect(check({ runAt: new Date(5) })).toEqual({ dueAt: 5 });
    expect(check({ runAt: 0 })).toEqual({ dueAt: 0 });
    // The upkeep would take it for a job that waits for a key, and run it.
    expect(check({ runAt: new Date(8.64e15) }).dueAt).toBeLessThan(RULES.parkedAt);
    expect(check({ durability: 'local' })).toEqual({ durability: null });
    expect(check({ durability: 'replicated' })).toEqual({ durability: { replicas: 1, timeoutMs: 1_000 } });
    expect(check({ durability: { replicas: 3, timeout: '2s' } })).toEqual({
      durability: { replicas: 3, timeoutMs: 2_000 },
    });
    expect(check({ durability: {} })).toEqual({ durability: { replicas: 1, timeoutMs: 1_000 } });
  });

  it('treats undefined as not given, and priority 0 as none', () => {
    expect(check({ delay: undefined, runAt: 5, id: undefined })).toEqual({ dueAt: 5 });
    expect(Object.keys(check({ priority: 0 }))).toEqual([]);
  });

  const duration = "must be a duration in ms or like '10s'";
  const moment = 'add().runAt must be a valid Date or whole ms since 1970';
  it.each([
    [{ delay: '-5m' }, `add().delay ${duration}, not negative, got "-5m" (string)`],
    [{ delay: Number.NaN }, `add().delay ${duration}, got NaN (number)`],
    [{ delay: 1e20 }, `add().delay ${duration}, at most 10 years, got`],
    [{ delay: 'tomorrow' }, `add().delay ${duration}, got "tomorrow" (string)`],
    [
      { delay: new Date(5) },
      `add().delay ${duration}; for a moment use the option runAt, got "1970-01-01T00:00:00.005Z" (Date)`,
    ],
    [{ runAt: new Date(Number.NaN) }, `${moment}, got null (Date)`],
    [{ runAt: 1_795_000_000 }, 'add().runAt must be ms since 1970, not seconds, got 1795000000 (number)'],
    [{ deadline: 1e10 }, 'add().deadline must be ms since 1970, not seconds, got 10000000000 (number)'],
    [{ runAt: -1 }, `${moment}, got -1 (number)`],
    [{ runAt: 1.5 }, `${moment}, got 1.5 (number)`],
    [{ runAt: 8.64e15 + 1 }, `${moment}, got`],
    [{ runAt: '2026-01-01' }, `${moment}, got "2026-01-01" (string)`],
    [{ delay: 0, runAt: 5 }, 'add().runAt must be left out if delay is given, got 5 (number)'],
    [{ attempts: 0 }, 'add().attempts must be an integer from 1 to 9007199254740991, got 0 (number)'],
    [{ attempts: -1 }, 'add().attempts must be an integer from 1 to 9007199254740991, got -1 (number)'],
    [{ attempts: 1.5 }, 'add().attempts must be an integer from 1 to 9007199254740991, got 1.5 (number)'],
    [
      { attempts: Number.NaN },
      'add().attempts must be an integer from 1 to 9007199254740991, got NaN (number)',
    ],
    [
      { attempts: Infinity },
      'add().attempts must be an integer from 1 to 9007199254740991, got Infinity (number)',
    ],
    [{ priority: -1 }, 'add().priority must be an integer from 0 to 2097151, got -1 (number)'],
    [{ priority: 2_097_152 }, 'add().priority must be an integer from 0 to 2097151, got 2097152 (number)'],
    [{ timeout: 0 }, 'add().timeout must be a duration from 1 ms to 2147483647 ms, got 0 (number)'],
    [{ timeout: '25d' }, 'add().timeout must be a duration from 1 ms to 2147483647 ms, got "25d" (string)'],
    [{ expiresIn: 0 }, 'add().expiresIn must be a duration from 1 ms to 315576000000 ms, got 0 (number)'],
    [{ retention: true }, `add().retention ${duration}, got true (boolean)`],
    [
      { backoff },
      'add().backoff must be plain data, because it is stored with the job; give the function a name in the option "backoffs" of the queue, or set it in its defaults, got function backoff',
    ],
    [{ backoff: { type: 'fixed' } }, `add().backoff.delay ${duration}, got undefined`],
    [
      { backoff: 'exponential' },
      `add().backoff ${duration}, a list of durations, { type: 'fixed' | 'exponential', delay }, a name from the option "backoffs" of forRoot or registerQueue, or in defaults and @Handle a function, got "exponential" (string)`,
    ],
    [{ dealy: 5 }, 'add().dealy is not an option; did you mean delay?'],
    [{ jobId: 'x' }, 'add().jobId is not an option; use the option id for the id of a job'],
    [null, 'add() must be an object, got null (null)'],
    ['10m', 'add() must be an object, got "10m" (string)'],
    [5_000, 'add() must be an object, got 5000 (number)'],
  ])('refuses %s', (options, message) => {
    expect(() => check(options)).toThrow(InvalidOptionError);
    expect(() => check(options)).toThrow(message);
  });

  it('names the option that cannot be read', () => {
    const throwing = {
      get type(): never {
        throw new TypeError('no');
      },
    };
    for (const [name, value] of [
      ['backoff', throwing],
      ['durability', revoked()],
      ['delay', revoked()],
      ['signal', revoked()],
    ] as const)
      expect(() => check({ [name]: value })).toThrow(
        `add().${name} must be something that can be read, got `,
      );
  });

  it.each([
    ['', 'a job id is 1 to 255 bytes of well-formed text without control characters: "" (string) is empty'],
    ['a\nb', 'holds the control character U+000A at position 1'],
    [5, '5 (number) is not a string'],
    [null, 'null (null) is not a string'],
  ])('refuses the id %j', (id, message) => {
    expect(() => check({ id })).toThrow(InvalidJobIdError);
    expect(() => check({ id })).toThrow(message);
  });

  it('is not polluted by its options, and pollutes nothing', () => {
    const hostile = JSON.parse('{"__proto__":{"attempts":9,"polluted":1}}') as JobOptions;
    expect(() => check(hostile)).toThrow('add().__proto__ is not an option');
    expect(() => check({ constructor: { prototype: { polluted: 1 } } })).toThrow(
      'add().constructor is not an option',
    );
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(check(undefined).attempts).toBeUndefined();
  });
});

describe('readDefaults', () => {
  it('keeps what was given, in ms, functions for the backoff included', () => {
    expect(readDefaults({ attempts: 5, backoff, timeout: '1m' }, 'd', refuse)).toEqual({
      attempts: 5,
      backoff,
      timeoutMs: 60_000,
    });
  });

  it('refuses what belongs to a single job', () => {
    const path = "registerQueue('email').defaults";
    const defaults = (given: object) => () => readDefaults(given, path, refuse);
    expect(defaults({ delay: 5 })).toThrow(
      `${path}.delay is not an option; it is an option of a single job: set it in add()`,
    );
    expect(defaults({ attempts: 0 })).toThrow(
      `${path}.attempts must be an integer from 1 to 9007199254740991, got 0`,
    );
    expect(defaults({ backoff: 'x y' })).toThrow(
      `${path}.backoff must be a duration in ms or like '10s', a list of durations, { type: 'fixed'`,
    );
  });
});

describe('mergeJobPolicy', () => {
  it('treats a negative delay, a time in the past, as none', () => {
    expect(checkJobOptions({ delay: -1 }, 'add()')).toEqual({ delayMs: 0 });
    expect(() => checkJobOptions({ delay: -Infinity }, 'add()')).toThrow('add().delay');
  });

  it('returns the defaults if nothing is set', () => {
    expect(mergeJobPolicy({}, {}, {})).toEqual(DEFAULTS);
    expect(DEFAULTS).toEqual({
      attempts: 3,
      backoff: { type: 'exponential', delay: 1_000, max: 3_600_000, jitter: 0.2 },
      timeoutMs: undefined,
      retentionMs: 0,
      expiresInMs: undefined,
      cancelledRetentionMs: 0,
      retryForMs: undefined,
      limitsAttempts: false,
      idHeldBy: [],
    });
  });

  it.each(['attempts', 'backoff', 'timeoutMs', 'retentionMs', 'expiresInMs'] as const)(
    'prefers %s of the job to that of the queue, and that to the one of the module, also if it is 0',
    (key) => {
      expect(mergeJobPolicy({}, {}, { [key]: 7 })[key]).toBe(7);
      expect(mergeJobPolicy({}, { [key]: 6 }, { [key]: 7 })[key]).toBe(6);
      expect(mergeJobPolicy({ [key]: 0 }, { [key]: 6 }, { [key]: 7 })[key]).toBe(0);
      expect(mergeJobPolicy({ [key]: 5 }, {}, { [key]: 7 })[key]).toBe(5);
      const others = { ...mergeJobPolicy({ [key]: 5 }, {}, {}), [key]: DEFAULTS[key] };
      expect(others).toEqual({ ...DEFAULTS, limitsAttempts: key === 'attempts' });
    },
  );

  it('merges backoffs as wholes, not field by field', () => {
    const queue = readDefaults({ backoff: { type: 'exponential', delay: '1s', jitter: 1 } }, 'd', refuse)!;
    const job = check({ backoff: { type: 'exponential', delay: '5s' } });
    expect(mergeJobPolicy(job, queue, {}).backoff).toEqual({ type: 'exponential', delay: 5_000 });
  });
});
