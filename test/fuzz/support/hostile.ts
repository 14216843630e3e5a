import { revoked } from '../../support/caught.js';

/** Values that a program would rather not meet, made afresh: each with a name for the failure it may cause. */
export interface Hostile {
  readonly what: string;
  readonly make: () => unknown;
}

const hostile = (what: string, make: () => unknown): Hostile => ({ what, make });

const angry = (): never => {
  throw new Error('do not look at me');
};

/** A thing whose fields throw when they are looked at. */
function thorny(...fields: string[]): object {
  const thing = {};
  for (const field of fields) Object.defineProperty(thing, field, { get: angry, enumerable: true });
  return thing;
}

/** A proxy that throws whatever is done with it. */
function allTraps(): object {
  const traps = Reflect.ownKeys(Reflect).filter((name) => typeof name === 'string');
  return new Proxy({}, Object.fromEntries(traps.map((name) => [name, angry])));
}

function circular(): unknown {
  const circle: Record<string, unknown> = { in: {} };
  (circle['in'] as Record<string, unknown>)['back'] = circle;
  return circle;
}

function circularError(): Error {
  const error = new Error('it goes round');
  (error as { cause?: unknown }).cause = new Error('and round', { cause: error });
  return error;
}

const nested = (depth: number): unknown => {
  let data: unknown = 1;
  for (let i = 0; i < depth; i++) data = { a: data };
  return data;
};

const withFields = (fields: Record<string, unknown>): Error => Object.assign(new Error('plain'), fields);

/** An object whose field is another thing each time it is looked at. */
function fickle(...values: unknown[]): object {
  let looks = 0;
  return Object.defineProperty({}, 'field', {
    enumerable: true,
    get: () => values[Math.min(looks++, values.length - 1)],
  });
}

/** Hostile values for any parameter. */
export const ODD: readonly Hostile[] = [
  hostile('undefined', () => undefined),
  hostile('null', () => null),
  hostile('an empty text', () => ''),
  hostile('NaN', () => Number.NaN),
  hostile('a BigInt', () => 10n ** 400n),
  hostile('a symbol', () => Symbol('s\n{"level":"fatal"}')),
  hostile('a function', () => angry),
  hostile('a class', () => class Odd {}),
  hostile('an object without a prototype', () => Object.create(null)),
  hostile('a circle', circular),
  hostile('nested too deep', () => nested(20_000)),
  hostile('a getter that throws', () => thorny('data')),
  hostile('fields that throw where promises have then', () => thorny('then')),
  hostile('fields that throw where observables have subscribe', () => thorny('subscribe')),
  hostile('fields that throw where observables have pipe', () =>
    Object.defineProperty({ subscribe: () => undefined }, 'pipe', { get: angry }),
  ),
  hostile('a toJSON that throws', () => ({ toJSON: angry })),
  hostile('a toJSON that is a getter that throws', () => thorny('toJSON')),
  hostile('a toJSON of nothing', () => ({ toJSON: () => undefined })),
  hostile('a toString that throws', () => ({ toString: angry, [Symbol.toPrimitive]: angry })),
  hostile('a revoked proxy', revoked),
  hostile('a proxy that throws', allTraps),
  hostile('one thing at first and a BigInt then', () => fickle(1, 1n)),
  hostile('one thing at first and nothing then', () => ({ toJSON: once(1, undefined) })),
  hostile('an own __proto__', () => JSON.parse('{"__proto__":{"polluted":true}}') as unknown),
  hostile('a constructor with a prototype', () => ({ constructor: { prototype: { polluted: true } } })),
  hostile('a Map', () => new Map([[{}, 1]])),
  hostile('a WeakRef', () => new WeakRef({})),
  hostile('a thenable that never ends twice', () => ({
    // oxlint-disable-next-line unicorn/no-thenable
    then: (done: (value: unknown) => void) => (done(1), done(2)),
  })),
  hostile('an array of a billion holes', () => Array(2 ** 30)),
  hostile('8 MB of text', () => 'x'.repeat(8 * 2 ** 20)),
  hostile('lone surrogates', () => '\ud800 \udfff'),
  hostile('controls', () => 'a\0b\u001b[2J\r\n{"level":"fatal"}\u2028'),
];

function once(first: unknown, then: unknown): () => unknown {
  let asked = false;
  return () => (asked ? then : ((asked = true), first));
}

/** Hostile values for handlers to throw. */
export const ERRORS: readonly Hostile[] = [
  ...ODD,
  hostile('an error that goes round', circularError),
  hostile('an error with 10 MB of message', () => new Error('m'.repeat(10 * 2 ** 20))),
  hostile('an error with 10 MB of stack', () => withFields({ stack: 's'.repeat(10 * 2 ** 20) })),
  hostile('an error with 10 MB of name', () => withFields({ name: 'n'.repeat(10 * 2 ** 20) })),
  hostile('an error without a stack', () => withFields({ stack: undefined })),
  hostile('an error whose fields are no text', () =>
    withFields({ name: 1, message: Symbol('m'), stack: {} }),
  ),
  hostile('an error with throwing fields', () =>
    thorny('name', 'message', 'stack', 'code', 'cause', 'delayMs'),
  ),
  hostile('an error named constructor', () => ({
    name: 'constructor',
    message: 'I am a class',
    code: '__proto__',
  })),
  hostile('an error named __proto__', () => withFields({ name: '__proto__' })),
  hostile('a snooze that never ends', () => withFields({ code: 'GODWIT_SNOOZE', delayMs: Infinity })),
  hostile('a snooze of text', () => withFields({ code: 'GODWIT_SNOOZE', delayMs: 'for a while' })),
  hostile('a code that is an object', () => withFields({ code: { toString: angry } })),
  hostile('a message with lines and colours', () => new Error('a\n\u001b[31m{"level":"fatal"}\0\ud800')),
  hostile('a very wide cause', () => new Error('wide', { cause: Array(100_000).fill('x') })),
  hostile('an AggregateError', () => new AggregateError([circularError(), null], 'many')),
  hostile('a DOMException', () => new DOMException('aborted', 'AbortError')),
];
