import { InvalidPayloadError, PayloadTooLargeError } from '#lib/errors.js';
import { encodePayload, encodeResult } from '#lib/job/payload.js';
import * as fc from 'fast-check';
import vm from 'node:vm';
import { describe, expect, it } from 'vitest';

const MAX = 1_048_576;
const RULES = { maxPayloadBytes: MAX, payloads: 'strict' } as const;
const encode = (data: unknown, max = MAX) =>
  encodePayload(data, 'data', { maxPayloadBytes: max, payloads: 'strict' });

const handler = () => 'x';

const refusalOf = (data: unknown, max = MAX): Error => {
  try {
    encodePayload(data, 'data', { maxPayloadBytes: max, payloads: 'strict' });
  } catch (error) {
    return error as Error;
  }
  throw new Error('was not refused');
};

const isRefusedInWords = (data: unknown): boolean => {
  try {
    encode(data);
    return false;
  } catch (error) {
    return (
      error instanceof InvalidPayloadError && /^data.* is .+, which JSON cannot hold/s.test(error.message)
    );
  }
};

const nested = (depth: number): unknown => {
  let data: unknown = [];
  for (let level = 1; level < depth; level++) data = level % 2 ? { in: data } : [data];
  return data;
};

describe('encodePayload', () => {
  it.each([
    ['null', null, 'null'],
    ['a string', 'a', '"a"'],
    ['an empty string', '', '""'],
    ['a number', 1.5, '1.5'],
    ['a boolean', false, 'false'],
    ['an empty object', {}, '{}'],
    ['an empty array', [], '[]'],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['text of all kinds', 'a\n\u2028\0🦜', JSON.stringify('a\n\u2028\0🦜')],
    ['a lone surrogate, escaped', '\ud800', '"\\ud800"'],
    ['boxed values', [new String('a'), new Number(1), new Boolean(true)], '["a",1,true]'],
    ['an object of another realm', vm.runInNewContext('({ a: [1, { b: null }] })'), '{"a":[1,{"b":null}]}'],
    ['undefined properties, left out', { a: undefined, b: 1, c: { d: undefined } }, '{"b":1,"c":{}}'],
  ])('writes %s', (_, data, json) => {
    expect(encode(data)).toBe(json);
  });

  it('writes a Date, a Buffer, a URL and an object with toJSON as their toJSON returns', () => {
    class Money {
      constructor(private readonly cents: bigint) {}
      toJSON(key: string) {
        return { key, amount: `${this.cents}` };
      }
    }
    const data = {
      at: new Date(0),
      bytes: Buffer.from('hi'),
      url: new URL('http://x/'),
      price: new Money(5n),
    };
    expect(JSON.parse(encode(data))).toEqual({
      at: '1970-01-01T00:00:00.000Z',
      bytes: { type: 'Buffer', data: [104, 105] },
      url: 'http://x/',
      price: { key: 'price', amount: '5' },
    });
    expect(encode([new Money(7n)])).toBe('[{"key":"0","amount":"7"}]');
    expect(encode(new Date(0))).toBe('"1970-01-01T00:00:00.000Z"');
  });

  it('writes the fields of custom classes, also with Symbol.toStringTag', () => {
    class Point {
      x = 1;
      #hidden = 2;
      get [Symbol.toStringTag]() {
        return 'Point';
      }
      norm() {
        return this.#hidden;
      }
    }
    expect(encode(new Point())).toBe('{"x":1}');
  });

  it('keeps __proto__ and constructor as data, and applies them to nothing', () => {
    const text =
      '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"a":{"__proto__":1}}';
    expect(encode(JSON.parse(text))).toBe(text);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('writes an object that is shared but not circular at each reference', () => {
    const shared = { a: [1] };
    expect(encode({ x: shared, y: [shared, shared] })).toBe('{"x":{"a":[1]},"y":[{"a":[1]},{"a":[1]}]}');
  });

  const adviceFor = (found: string) =>
    found === 'undefined'
      ? 'which JSON cannot hold; pass null if there is no value'
      : 'which JSON cannot hold; turn it into a string, a number or plain data first';
  class List extends Map {
    name = 'has a field';
  }
  const refusals: [string, unknown, string, string][] = [
    ['undefined', undefined, 'data', 'undefined'],
    ['a function', handler, 'data', 'a function'],
    ['a class', Date, 'data', 'a function'],
    ['a symbol', Symbol('x'), 'data', 'a symbol'],
    ['a BigInt', 1n, 'data', 'a BigInt'],
    ['NaN', Number.NaN, 'data', 'NaN'],
    ['a method', { a: { run: handler } }, 'data.a.run', 'a function'],
    ['a nested symbol', [[Symbol('x')]], 'data[0][0]', 'a symbol'],
    ['a nested BigInt', { items: [{}, {}, {}, { at: 5n }] }, 'data.items[3].at', 'a BigInt'],
    ['Infinity', { n: Infinity }, 'data.n', 'Infinity'],
    ['-Infinity', { n: [-Infinity] }, 'data.n[0]', '-Infinity'],
    ['a boxed NaN', { n: new Number(Number.NaN) }, 'data.n', 'NaN'],
    ['a boxed BigInt', { n: Object(1n) }, 'data.n', 'a BigInt'],
    ['undefined in an array', [1, undefined], 'data[1]', 'undefined'],
    ['a hole', { list: Object.assign([1], { 2: 3 }) }, 'data.list[1]', 'a hole in an array'],
    ['a Map', { m: new Map([[1, 2]]) }, 'data.m', 'a Map'],
    ['a Map with fields', { m: new List() }, 'data.m', 'a Map'],
    ['a Map of another realm', vm.runInNewContext('({ m: new Map() })'), 'data.m', 'a Map'],
    ['a Set', [new Set()], 'data[0]', 'a Set'],
    ['a WeakMap', new WeakMap(), 'data', 'a WeakMap'],
    ['a WeakSet', new WeakSet(), 'data', 'a WeakSet'],
    ['a WeakRef', new WeakRef({}), 'data', 'a WeakRef'],
    ['a RegExp', { pattern: /x/ }, 'data.pattern', 'a RegExp'],
    ['a Promise', { later: Promise.resolve(1) }, 'data.later', 'a Promise'],
    ['an Error', { error: Object.assign(new TypeError('x'), { code: 'E' }) }, 'data.error', 'an Error'],
    ['an ArrayBuffer', new ArrayBuffer(2), 'data', 'an ArrayBuffer'],
    ['a Uint8Array', { bytes: new Uint8Array(2) }, 'data.bytes', 'a Uint8Array'],
    ['a Float64Array', new Float64Array([Number.NaN]), 'data', 'a Float64Array'],
    ['URLSearchParams', new URLSearchParams('a=1'), 'data', 'a URLSearchParams'],
    ['a generator', (function* () {})(), 'data', 'a Generator'],
    ['an invalid Date', { at: new Date(Number.NaN) }, 'data.at', 'an invalid Date'],
    ['an invalid Date of another realm', vm.runInNewContext('[new Date(NaN)]'), 'data[0]', 'an invalid Date'],
    ['toJSON that returns nothing', { toJSON() {} }, 'data', 'undefined'],
    ['toJSON that returns a BigInt', [{ toJSON: () => ({ n: 1n }) }], 'data[0].n', 'a BigInt'],
    ['toJSON that returns a Map', { a: { toJSON: () => new Map() } }, 'data.a', 'a Map'],
    [
      'toJSON that returns a Date, which JSON does not ask again',
      { toJSON: () => new Date(0) },
      'data',
      'a Date',
    ],
    [
      'odd keys on the way',
      { 'a b': { '': [{ 'x\u0085"': 1n }] } },
      'data["a b"][""][0]["x\\u0085\\""]',
      'a BigInt',
    ],
    [
      'a function under __proto__',
      JSON.parse('{"__proto__":[null]}', (k, v) => (k === '0' ? handler : v)),
      'data.__proto__[0]',
      'a function',
    ],
  ];
  it.each(refusals)('refuses %s', (_, data, path, found) => {
    const error = refusalOf(data);
    expect(error).toBeInstanceOf(InvalidPayloadError);
    expect(error).toMatchObject({ code: 'GODWIT_INVALID_PAYLOAD', path, found });
    expect(error.message).toBe(`${path} is ${found}, ${adviceFor(found)}`);
  });

  it('names the given path', () => {
    expect(() => encodePayload([1n], 'addBulk()[2].data', RULES)).toThrow('addBulk()[2].data[0] is a BigInt');
  });

  describe('circular references and depth', () => {
    it('names the path of a circular reference', () => {
      const self: Record<string, unknown> = { a: 1 };
      self['self'] = self;
      expect(refusalOf(self).message).toBe(`data.self is a circular reference, ${adviceFor('a circle')}`);

      const child: Record<string, unknown> = {};
      child['up'] = [0, { parent: child }];
      expect(refusalOf({ list: [null, child] }).message).toBe(
        `data.list[1].up[1].parent is a circular reference, ${adviceFor('a circle')}`,
      );
    });

    it('finds a cycle of 300 objects and one through many branches', () => {
      const first: Record<string, unknown> = {};
      let last = first;
      for (let n = 1; n < 300; n++) last = last['next'] = { label: n } as Record<string, unknown>;
      last['next'] = first;
      expect(refusalOf(first)).toMatchObject({ found: 'a circular reference' });

      const tree: unknown[] = [[1], { a: 2 }];
      tree.push(tree, tree, tree);
      expect(refusalOf(tree)).toMatchObject({ path: 'data[2]', found: 'a circular reference' });
    });

    it('accepts 1,000 levels and refuses 1,001, with the beginning of the path', () => {
      expect(JSON.parse(encode(nested(1_000)))).toEqual(nested(1_000));
      const error = refusalOf(nested(1_001));
      expect(error).toMatchObject({ found: 'nested deeper than 1,000 levels' });
      expect(error.message.length).toBeLessThan(250);
      expect(error.message).toMatch(/^data\[0\]\.in\[0\]\.in.*\.\.\. is nested deeper than 1,000 levels, /);
    });

    it('survives 100,000 levels and a toJSON without end', () => {
      expect(refusalOf(nested(100_000))).toBeInstanceOf(InvalidPayloadError);
      class Endless {
        toJSON(): unknown {
          return { again: new Endless() };
        }
      }
      expect(refusalOf(new Endless())).toMatchObject({ found: 'nested deeper than 1,000 levels' });
    });
  });

  describe('size', () => {
    it.each([
      ['ASCII', 'x'.repeat(98)],
      ['two bytes each', 'é'.repeat(49)],
      ['three bytes each', '€'.repeat(32) + 'xx'],
      ['four bytes each', '🦜'.repeat(24) + 'xx'],
    ])('is counted in bytes of UTF-8: %s', (_, text) => {
      expect(encode(text, 100)).toBe(`"${text}"`);
      const error = refusalOf(text, 99);
      expect(error).toBeInstanceOf(PayloadTooLargeError);
      expect(error).toMatchObject({ code: 'GODWIT_PAYLOAD_TOO_LARGE', bytes: 100, maxPayloadBytes: 99 });
      expect(error.message).toBe(
        'the data of the job takes 100 bytes, more than maxPayloadBytes (99); ' +
          'store it elsewhere and put its address into the job, or raise maxPayloadBytes',
      );
    });

    it('names the data that is too large', () => {
      expect(() =>
        encodePayload('xxx', 'data', { ...RULES, maxPayloadBytes: 4 }, 'the data of job 7'),
      ).toThrow('the data of job 7 takes 5 bytes');
    });

    it.each([
      ['a huge sparse array', () => Object.assign([], { length: 4_294_967_295 })],
      ['a file in memory', () => ({ file: Buffer.alloc(64 * MAX) })],
      ['one long text many times', () => Array.from({ length: 1_000 }, () => 'x'.repeat(1_000_000))],
      [
        'parts that multiply',
        () => {
          let data: unknown = ['x'];
          for (let level = 0; level < 60; level++) data = { left: data, right: data };
          return data;
        },
      ],
    ])('is judged without encoding: %s', (_, make) => {
      const error = refusalOf(make());
      expect(error).toBeInstanceOf(PayloadTooLargeError);
      expect((error as PayloadTooLargeError).bytes).toBeGreaterThan(8 * MAX);
      expect(error.message).toContain('the data of the job takes at least ');
    });
  });

  it('writes what JSON.parse reads back, for any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false, maxDepth: 8 }), (data) => {
        expect(JSON.parse(encode(data))).toEqual(JSON.parse(JSON.stringify(data)));
      }),
      { numRuns: 500 },
    );
  });

  it('for any value: writes exactly what JSON writes, or refuses it with a message', () => {
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
      withObjectString: true,
      withSparseArray: true,
      withTypedArray: true,
      maxDepth: 4,
    });
    fc.assert(
      fc.property(anything, (data) => {
        expect(isRefusedInWords(data) || encode(data) === JSON.stringify(data)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("with payloads: 'json'", () => {
  const lax = (data: unknown) => encodePayload(data, 'data', { ...RULES, payloads: 'json' });

  it.each([
    [[undefined, () => 1, Symbol('x'), Number.NaN, -Infinity]],
    [{ a: undefined, b: new Map([[1, 2]]), c: new Date(Number.NaN), d: () => 1, e: /x/ }],
    // eslint-disable-next-line no-sparse-arrays
    [[1, , 3]],
    [new Error('x')],
  ])('writes %o as JSON.stringify does', (data) => {
    expect(() => encode(data)).toThrow(InvalidPayloadError);
    expect(lax(data)).toBe(JSON.stringify(data));
  });

  it('writes null for nothing, and refuses what JSON cannot write', () => {
    expect(lax(undefined)).toBe('null');
    expect(lax(() => 1)).toBe('null');
    expect(() => lax([1n])).toThrow('data[0] is a BigInt');
    const circular: unknown[] = [];
    circular.push(circular);
    expect(() => lax(circular)).toThrow('a circular reference');
    expect(() => lax('x'.repeat(MAX))).toThrow(PayloadTooLargeError);
  });
});

describe('encodeResult', () => {
  it('returns undefined for no result, and JSON for null and other values', () => {
    expect(encodeResult(undefined, RULES)).toBeUndefined();
    expect(encodeResult(null, RULES)).toBe('null');
    expect(encodeResult({ sent: 1 }, RULES)).toBe('{"sent":1}');
  });

  it('refuses by the same rules, with its own message', () => {
    expect(() => encodeResult({ sent: [1n] }, RULES)).toThrow('result.sent[0] is a BigInt');
    expect(() => encodeResult('x'.repeat(MAX), RULES)).toThrow('the result of the job takes 1048578 bytes');
    expect(() => encodeResult('xxx', { ...RULES, maxPayloadBytes: 4 })).toThrow(PayloadTooLargeError);
  });
});
