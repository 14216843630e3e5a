import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { messageOf, read, stackOf } from '#lib/errors/thrown.js';
import { revoked } from '../support/caught.js';

const trap = {
  get message(): string {
    throw new Error('do not look');
  },
};

describe('messageOf', () => {
  it.each([
    ['an error', new Error('it broke'), 'it broke'],
    ['an error of another realm', runInNewContext('new Error("elsewhere")'), 'elsewhere'],
    ['an error without a message', new Error(), ''],
    ['what only looks like one', { message: 'as if' }, 'as if'],
    ['a text', 'plain', '"plain" (string)'],
    ['undefined', undefined, 'undefined'],
    ['null', null, 'null (null)'],
    ['what no text can be made of', Object.create(null), '{} (object)'],
    ['a promise that was not awaited', Promise.resolve(), '{} (Promise)'],
    [
      'an object whose class has a name that is no word',
      new (class {
        static name = '\n';
      })(),
      '{} (object)',
    ],
    ['what cannot be looked at', revoked(), 'something that cannot be shown (object)'],
    ['a message that is no text', { message: 7 }, '{"message":7} (object)'],
  ])('of %s', (_, thrown: unknown, message) => {
    expect(messageOf(thrown)).toBe(message);
  });

  it('of a value that throws when it is read is its type', () => {
    expect(messageOf(trap)).toContain('(object)');
  });

  it('has a maximum length', () => {
    expect(messageOf(new Error('x'.repeat(100_000)))).toHaveLength(4096);
  });
});

it('stackOf returns the stack if there is one', () => {
  expect(stackOf(new Error('it broke'))).toContain('thrown.spec.ts');
  for (const thrown of [undefined, 'text', { stack: 7 }, revoked()]) expect(stackOf(thrown)).toBeUndefined();
});

it('read returns a field of any value', () => {
  expect(read({ code: 'A' }, 'code')).toBe('A');
  for (const thrown of [undefined, null, 7, trap, revoked()]) expect(read(thrown, 'message')).toBeUndefined();
});
