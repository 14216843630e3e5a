import { MAX_DURATION_MS } from '#lib/job/duration.js';
import { decodeBody, encodeBody, expiresAt, NO_DATA, type RecordOptions } from '#lib/job/job-record.js';
import { encodePayload } from '#lib/job/payload.js';
import { checkJobOptions } from '#lib/options/job-options.js';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

const NOW = Date.UTC(2026, 6, 1);

const decoded = (own: RecordOptions) => decodeBody(encodeBody('n', NOW, own, '1'))!;

describe('encodeBody', () => {
  it('writes four lines, of which the third is empty without options', () => {
    expect(encodeBody('welcome', 36, {}, '{"to":"a"}')).toBe('welcome\n10\n\n{"to":"a"}');
  });

  it('drops fractions of a millisecond, which could not be read back', () => {
    expect(encodeBody('n', 36.75, { delayMs: 5 }, '1')).toBe('n\n10\n{"d":41}\n1');
  });

  it('writes what a worker needs, and neither id nor 0 delays', () => {
    const options = checkJobOptions({ id: 'x', delay: 0, priority: 0 }, 'add()');
    expect(encodeBody('welcome', 35, options, '1')).toBe('welcome\nz\n\n1');
    const all = checkJobOptions(
      {
        id: 'x',
        attempts: 5,
        backoff: { type: 'exponential', delay: '1s' },
        timeout: '30s',
        retention: '1h',
        expiresIn: '2h',
        priority: 7,
        delay: 100,
      },
      'add()',
    );
    expect(encodeBody('n', 1_000, all, '1')).toBe(
      'n\nrs\n{"a":5,"t":30000,"r":3600000,"e":7200000,"p":7,"b":{"type":"exponential","delay":1000},"d":1100}\n1',
    );
  });
});

describe('decodeBody', () => {
  it('returns when the job may first run: from a delay or a date, but not from a date in the past', () => {
    const runnableAt = (options: RecordOptions) =>
      decodeBody(encodeBody('n', NOW, options, '1'))!.options.runnableAt;
    expect(runnableAt({ delayMs: 500 })).toBe(NOW + 500);
    expect(runnableAt({ dueAt: NOW + 7 })).toBe(NOW + 7);
    expect(runnableAt({ dueAt: NOW - 7 })).toBeUndefined();
    expect(runnableAt({ delayMs: 0 })).toBeUndefined();
    expect(runnableAt({})).toBeUndefined();
  });

  const text = fc.oneof(
    fc.string({ minLength: 1 }),
    fc.constantFrom('__proto__', 'meta', '{x}', '🦜', '\u2028'),
  );
  const count = fc.nat({ max: MAX_DURATION_MS });
  const backoff = fc.oneof(
    count,
    fc.array(count, { minLength: 1, maxLength: 5 }),
    fc.record({ type: fc.constant('fixed' as const), delay: count }),
    fc.record(
      {
        type: fc.constant('exponential' as const),
        delay: fc.nat({ max: 1_000 }),
        max: fc.integer({ min: 1_000, max: 10_000 }),
        factor: fc.double({ min: 1, max: 100, noNaN: true }),
        jitter: fc.double({ min: 0, max: 1, noNaN: true }).map((n) => n + 0),
      },
      { requiredKeys: ['type', 'delay'] },
    ),
  );
  const kept = {
    attempts: fc.integer({ min: 1, max: 1_000_000 }),
    backoff,
    timeoutMs: count,
    retentionMs: count,
    expiresInMs: count,
    priority: fc.integer({ min: 1, max: 2_097_151 }),
    cancelledRetentionMs: count,
    retryForMs: count,
    deadline: count,
    awaited: fc.constant(true as const),
    group: fc.string(),
    cost: count,
    digest: fc.string(),
    isUnique: fc.constant(true as const),
    items: count,
    headers: fc.constant({ tenant: 'x' }),
  };
  const options = fc.record(kept, { requiredKeys: [] });
  const wait = fc.oneof(fc.constant({}), fc.record({ delayMs: count }), fc.record({ dueAt: count }));

  it('reads back what encodeBody wrote, for any name, time, options and data', () => {
    const createdAt = fc.nat({ max: 8_640_000_000_000_000 });
    const data = fc.jsonValue({ maxDepth: 6 });
    fc.assert(
      fc.property(text, createdAt, options, wait, data, (name, at, own, later, value) => {
        const json = encodePayload(value, 'data', { maxPayloadBytes: 1_048_576, payloads: 'strict' });
        const body = encodeBody(name, at, { ...own, ...later }, json);
        const runnableAt = (later as RecordOptions).dueAt ?? at + ((later as RecordOptions).delayMs ?? 0);
        expect(decodeBody(body)).toEqual({
          name,
          createdAt: at,
          options: runnableAt > at ? { ...own, runnableAt } : own,
          data: JSON.parse(json),
        });
        expect(body.slice(0, body.indexOf('\n'))).toBe(name);
      }),
      { numRuns: 1_000 },
    );
  });

  it('keeps __proto__ as data and applies it to nothing', () => {
    const json = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
    const { data } = decodeBody(encodeBody('n', 1, {}, json))!;
    expect(JSON.stringify(data)).toBe(json);
    expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
    expect(decodeBody('n\n1\n{"__proto__":{"attempts":9}}\n1')!.options.attempts).toBeUndefined();
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('keeps options that it does not know, because a newer version may have written them', () => {
    expect(decodeBody('n\n1\n{"a":2,"zz":{"later":true}}\n5')).toEqual({
      name: 'n',
      createdAt: 1,
      options: { attempts: 2 },
      data: 5,
    });
  });

  it('reads everything but the data of a job with encoded data, and the name of the codec', () => {
    const { data, codec, ...rest } = decodeBody('n\n1\n{"a":2}\n~z:AAAA')!;
    expect({ data, codec, ...rest }).toEqual({
      name: 'n',
      createdAt: 1,
      options: { attempts: 2 },
      data: undefined,
      codec: '~z',
    });
    expect(decodeBody('n\n1\n\n~')!.codec).toBe('~');
    expect(decodeBody(`n\n1\n\n~${'x'.repeat(99)}`)!.codec).toHaveLength(32);
    expect('codec' in decodeBody('n\n1\n\n"~z:AAAA"')!).toBe(false);
  });

  it('reads a job without data, which is not the same as any JSON value', () => {
    expect(decodeBody(encodeBody('n', 1, { attempts: 2 }, NO_DATA))).toEqual({
      name: 'n',
      createdAt: 1,
      options: { attempts: 2 },
      data: undefined,
    });
  });

  it.each([
    '',
    'n',
    'n\n',
    'n\n1',
    'n\n1\n',
    '\n1\n\n1',
    'n\n\n\n1',
    'n\n-1\n\n1',
    'n\n1A\n\n1',
    'n\n1.5\n\n1',
    'n\n 1\n\n1',
    'n\nzzzzzzzzzzzz\n\n1',
    'n\n1\n\n{',
    'n\n1\n\nundefined',
    'n\n1\n\n1 2',
    'n\n1\n{\n1',
    'n\n1\nnull\n1',
    'n\n1\n[]\n1',
    'n\n1\n5\n1',
    'n\n1\n{"a":"5"}\n1',
    'n\n1\n{"a":-1}\n1',
    'n\n1\n{"t":1.5}\n1',
    'n\n1\n{"r":null}\n1',
    'n\n1\n{"e":1e99}\n1',
    'n\n1\n{"p":{}}\n1',
    'n\n1\n{"d":[]}\n1',
    'n\n1\n{"b":{"type":"linear"}}\n1',
    'n\n1\n{"b":null}\n1',
    '{"name":"n"}',
  ])('returns null for %j', (body) => {
    expect(decodeBody(body)).toBeNull();
  });

  it('never throws, whatever the text', () => {
    const lines = fc.array(fc.oneof(fc.string(), fc.json(), fc.constantFrom('', '1', '{}', '{"b":[]}')), {
      maxLength: 6,
    });
    fc.assert(
      fc.property(lines, (parts) => {
        const answer = decodeBody(parts.join('\n'));
        expect(answer === null || typeof answer.name === 'string').toBe(true);
      }),
      { numRuns: 1_000 },
    );
    expect(decodeBody(`n\n1\n\n${'['.repeat(1_000_000)}`)).toBeNull();
  });
});

describe('expiresAt', () => {
  it('counts from when the job could first have run', () => {
    expect(expiresAt(decoded({}), 1_000)).toBe(NOW + 1_000);
    expect(expiresAt(decoded({ delayMs: 60_000 }), 1_000)).toBe(NOW + 61_000);
    expect(expiresAt(decoded({ dueAt: NOW + 5 }), 1_000)).toBe(NOW + 1_005);
    expect(expiresAt(decoded({ dueAt: 0 }), 1_000)).toBe(NOW + 1_000);
  });

  it('is undefined without a limit', () => {
    expect(expiresAt(decoded({ delayMs: 60_000 }), undefined)).toBeUndefined();
  });
});
