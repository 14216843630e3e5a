import { BootstrapError, InvalidOptionError, InvalidQueueNameError } from '#lib/errors.js';
import { checkQueueName } from '#lib/job/job-id.js';
import {
  boolean,
  collectFaults,
  copyFields,
  duration,
  field,
  integer,
  oneOf,
  refuse,
  rule,
  selecting,
  shape,
} from '#lib/options/check.js';
import { describe, expect, it } from 'vitest';
import { revoked } from '../support/caught.js';

const read = shape({
  size: field('size', integer(1, 10)),
  wait: field('waitMs', duration(10, 1_000)),
  loud: field('loud', boolean),
  role: field('role', oneOf('cook', 'waiter')),
  table: field('table', shape({ seats: field('seats', integer(1, 8)) })),
});

const one = (value: unknown) => () => read(value, 'forRoot()', refuse);
const all = (value: unknown) => collectFaults((report) => read(value, 'forRoot()', report)).faults;

describe('shape', () => {
  it('reads only what was given, under the checked names', () => {
    expect(read({}, 'p', refuse)).toEqual({});
    const given = { size: 10, wait: '1s', loud: false, role: 'cook', table: { seats: 8 } };
    expect(read(given, 'p', refuse)).toEqual({
      size: 10,
      waitMs: 1_000,
      loud: false,
      role: 'cook',
      table: { seats: 8 },
    });
    expect(Object.keys(read({ size: undefined, table: undefined }, 'p', refuse)!)).toEqual([]);
  });

  it('refuses undefined in fields that select', () => {
    const fields = { size: field('size', integer(1, 10)), loud: field('isLoud', boolean) };
    const select = shape(selecting(fields));
    expect(select({}, 'call()', refuse)).toEqual({});
    expect(select({ size: 2, loud: false }, 'call()', refuse)).toEqual({ size: 2, isLoud: false });
    const { faults } = collectFaults((report) =>
      select({ size: undefined, loud: undefined }, 'call()', report),
    );
    expect(faults).toEqual([
      'call().size must be a value, or left out to match all jobs, got undefined',
      'call().loud must be a value, or left out to match all jobs, got undefined',
    ]);
    expect(shape(fields)({ size: undefined }, 'call()', refuse)).toEqual({});
  });

  it.each([
    [{ size: 0 }, 'forRoot().size must be an integer from 1 to 10, got 0 (number)'],
    [{ size: 11 }, 'forRoot().size must be an integer from 1 to 10, got 11 (number)'],
    [{ size: 1.5 }, 'forRoot().size must be an integer from 1 to 10, got 1.5 (number)'],
    [{ size: '5' }, 'forRoot().size must be an integer from 1 to 10, got "5" (string)'],
    [{ size: Number.NaN }, 'forRoot().size must be an integer from 1 to 10, got NaN (number)'],
    [{ size: null }, 'forRoot().size must be an integer from 1 to 10, got null (null)'],
    [{ wait: 9 }, 'forRoot().wait must be a duration from 10 ms to 1000 ms, got 9 (number)'],
    [{ wait: '2s' }, 'forRoot().wait must be a duration from 10 ms to 1000 ms, got "2s" (string)'],
    [{ wait: 'x' }, `forRoot().wait must be a duration in ms or like '10s', got "x" (string)`],
    [{ loud: 'false' }, 'forRoot().loud must be true or false, got "false" (string)'],
    [{ role: 'boss' }, `forRoot().role must be one of 'cook', 'waiter', got "boss" (string)`],
    [{ table: { seats: 9 } }, 'forRoot().table.seats must be an integer from 1 to 8, got 9 (number)'],
    [{ table: 4 }, 'forRoot().table must be an object, got 4 (number)'],
    [[], 'forRoot() must be an object, got [] (array)'],
    [null, 'forRoot() must be an object, got null (null)'],
    ['x', 'forRoot() must be an object, got "x" (string)'],
  ])('refuses %j in one sentence', (value, message) => {
    expect(one(value)).toThrow(InvalidOptionError);
    expect(one(value)).toThrow(message);
    expect(all(value)).toEqual([message]);
  });

  it.each([
    ['szie', 'forRoot().szie is not an option; did you mean size?'],
    ['Size', 'forRoot().Size is not an option; did you mean size?'],
    ['lod', 'forRoot().lod is not an option; did you mean loud?'],
    ['rolle', 'forRoot().rolle is not an option; did you mean role?'],
    ['quantity', 'forRoot().quantity is not an option; the options are size, wait, loud, role, table'],
    ['x\n', 'forRoot()["x\\n"] is not an option; the options are size, wait, loud, role, table'],
    ['constructor', 'forRoot().constructor is not an option; the options are'],
    ['toString', 'forRoot().toString is not an option; the options are'],
    ['a'.repeat(100_000), `forRoot().${'a'.repeat(57)}... is not an option`],
  ])('refuses the unknown field %s', (key, message) => {
    expect(one({ [key]: 'secret' })).toThrow(InvalidOptionError);
    expect(one({ [key]: 'secret' })).toThrow(message);
    expect(one({ [key]: 'secret' })).not.toThrow('secret');
  });

  it('names the path of a nested unknown field', () => {
    expect(one({ table: { seat: 1 } })).toThrow('forRoot().table.seat is not an option; did you mean seats?');
  });

  it('refuses __proto__, which cannot pass options', () => {
    const hostile: unknown = JSON.parse('{"size":3,"__proto__":{"loud":true,"polluted":true}}');
    const { value, faults } = collectFaults((report) => read(hostile, 'forRoot()', report));
    expect(faults).toEqual([
      'forRoot().__proto__ is not an option; the options are size, wait, loud, role, table',
    ]);
    expect(value).toEqual({ size: 3 });
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(value!.loud).toBeUndefined();
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

describe('fields that an object inherits or hides', () => {
  class Options {
    get size() {
      return 3;
    }
    loud = true;
    toJSON() {
      return {};
    }
  }
  class More extends Options {
    get role() {
      return 'cook';
    }
  }
  const hidden = Object.defineProperty({}, 'size', { get: () => 4 });
  const misspelt = new (class {
    get sice() {
      return 5;
    }
  })();

  it.each<[string, object, object]>([
    ['of a class, as getters', new More(), { size: 3, loud: true, role: 'cook' }],
    ['of a prototype', Object.create({ size: 2 }) as object, { size: 2 }],
    [
      'of a prototype without one',
      Object.create(Object.assign(Object.create(null), { size: 2 })),
      { size: 2 },
    ],
    ['that are not enumerable', hidden, { size: 4 }],
    ['of an object without prototype', Object.assign(Object.create(null), { size: 6 }), { size: 6 }],
  ])('are read: %s', (_, value, expected) => {
    expect(read(value, 'p', refuse)).toEqual(expected);
    expect(copyFields(value, 'p', ['size', 'loud', 'role'])).toEqual(expected);
  });

  it('are refused if they are misspelt', () => {
    expect(one(misspelt)).toThrow('forRoot().sice is not an option; did you mean size?');
    expect(one(Object.create({ sice: 1 }))).toThrow('forRoot().sice is not an option; did you mean size?');
  });

  it.each([[new Date(0)], [new Map()], [Promise.resolve({ size: 1 })], [/x/], [Object('size')]])(
    'are not read from %o, which is not an object of options',
    (value) => expect(one(value)).toThrow('forRoot() must be an object'),
  );

  it('are read once, and refused if reading them throws', () => {
    let reads = 0;
    expect(
      read(
        {
          get size() {
            return ++reads;
          },
        },
        'p',
        refuse,
      ),
    ).toEqual({ size: 1 });
    const broken = {
      get size() {
        throw new TypeError('no');
      },
    };
    expect(one(broken)).toThrow(InvalidOptionError);
    expect(one(broken)).toThrow('forRoot() must be something that can be read');
  });

  it('reports a field that cannot be read, and reads the others', () => {
    const list = shape({
      names: field('names', (value) => [...(value as string[])]),
      loud: field('loud', boolean),
    });
    const { value, faults } = collectFaults((report) => list({ names: revoked(), loud: true }, 'p', report));
    expect(value).toEqual({ loud: true });
    expect(faults).toEqual([expect.stringMatching(/^p\.names must be something that can be read, got /)]);
  });
});

describe('collectFaults', () => {
  it('collects every fault as a sentence, in the order of the fields', () => {
    const faults = all({ size: -1, wait: 'x', role: 'cook', lound: true, table: { seats: 0, legs: 4 } });
    expect(faults).toEqual([
      'forRoot().size must be an integer from 1 to 10, got -1 (number)',
      `forRoot().wait must be a duration in ms or like '10s', got "x" (string)`,
      'forRoot().lound is not an option; did you mean loud?',
      'forRoot().table.seats must be an integer from 1 to 8, got 0 (number)',
      'forRoot().table.legs is not an option; the options are seats',
    ]);
    expect(new BootstrapError(faults).message).toContain('5 faults:\n - forRoot().size must be');
  });

  it('returns the value, and no faults, if all is valid', () => {
    expect(collectFaults((report) => read({ size: 2 }, 'p', report))).toEqual({
      value: { size: 2 },
      faults: [],
    });
  });
});

describe('rule', () => {
  it('reports the errors of this library and lets others through', () => {
    const seen: unknown[] = [];
    expect(rule(checkQueueName)('a b', 'p', (fault) => seen.push(fault))).toBeUndefined();
    expect(seen).toEqual([expect.any(InvalidQueueNameError)]);
    const broken = rule(() => {
      throw new TypeError('a bug');
    });
    expect(() => broken(1, 'p', (fault) => seen.push(fault))).toThrow(TypeError);
    expect(seen).toHaveLength(1);
  });
});
