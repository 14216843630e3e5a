import { InvalidJobIdError, InvalidJobNameError, InvalidQueueNameError } from '#lib/errors.js';
import {
  checkJobId,
  checkJobName,
  checkNewJobId,
  checkQueueName,
  generateId,
  isPlainName,
  scheduledJobId,
  scheduleOf,
} from '#lib/job/job-id.js';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { outcomeOf } from '../support/caught.js';
import { character } from '../support/character.js';

const RULE = '1 to 255 bytes of well-formed text without control characters';

const ordinary = [
  'a',
  'meta',
  'delayed',
  '{x}',
  '}{',
  '*',
  '?[a-z]',
  '__proto__',
  'constructor',
  '0',
  '-1',
  '1e3',
  'a:b',
  ' ',
  '~',
  '"quoted"',
  'welcome-ann@example.com',
  '🦜',
  'שלום',
  'e\u0301',
  '\u202eabc',
  '\u2028',
  '\ufeff',
  '\uffff',
  'x'.repeat(255),
  'é'.repeat(127),
  '€'.repeat(85),
  '🦜'.repeat(63),
];

const refused: [unknown, string][] = [
  ['', '"" (string) is empty'],
  ['x'.repeat(256), 'is 256 bytes long'],
  ['é'.repeat(128), 'is 256 bytes long'],
  ['€'.repeat(86), 'is 258 bytes long'],
  ['🦜'.repeat(64), 'is 256 bytes long'],
  ['x'.repeat(65_536), 'is 65536 bytes long'],
  ['a\nb', '"a\\nb" (string) holds the control character U+000A at position 1'],
  ['a\r\nSET x 1', 'holds the control character U+000D at position 1'],
  ['\0', 'holds the control character U+0000 at position 0'],
  ['\u001b[2J', 'holds the control character U+001B at position 0'],
  ['abc\u007f', '"abc\\u007f" (string) holds the control character U+007F at position 3'],
  ['é\u0085', 'holds the control character U+0085 at position 1'],
  ['\u0080', 'holds the control character U+0080 at position 0'],
  ['\u009f', 'holds the control character U+009F at position 0'],
  ['\ud800', '"\\ud800" (string) holds the lone surrogate U+D800 at position 0'],
  ['a\udc00', 'holds the lone surrogate U+DC00 at position 1'],
  ['\ud83ea', 'holds the lone surrogate U+D83E at position 0'],
  ['\udc00\ud800', 'holds the lone surrogate U+DC00 at position 0'],
  ['🦜\ud83e', 'holds the lone surrogate U+D83E at position 2'],
  [undefined, 'undefined is not a string'],
  [null, 'null (null) is not a string'],
  [7, '7 (number) is not a string'],
  [Symbol('x'), 'Symbol(x) is not a string'],
  [new String('x'), '"x" (String) is not a string'],
];

/** The result of a call, or the class of its error. */

describe.each([
  { check: checkJobId, Refusal: InvalidJobIdError, what: 'a job id', code: 'GODWIT_INVALID_JOB_ID' },
  { check: checkJobName, Refusal: InvalidJobNameError, what: 'a job name', code: 'GODWIT_INVALID_JOB_NAME' },
])('$what', ({ check, Refusal, what, code }) => {
  it.each(ordinary)('may be %j', (text) => {
    expect(check(text)).toBe(text);
  });

  it.each(refused)('may not be %j', (value, why) => {
    let error: unknown;
    try {
      check(value);
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(Refusal);
    expect(error).toMatchObject({ code, received: value });
    expect((error as Error).message).toContain(`${what} is ${RULE}: `);
    expect((error as Error).message).toContain(why);
  });

  it('is accepted exactly when it is well-formed, 1 to 255 bytes, and without C0, DEL or C1', () => {
    const text = fc.oneof(
      fc.string({ maxLength: 300 }),
      fc.string({ unit: character, maxLength: 90 }),
      // Single UTF-16 units around the limits, lone surrogates included.
      fc
        .array(fc.oneof(fc.integer({ min: 0, max: 0xa5 }), fc.integer({ min: 0xd7f0, max: 0xe00f })), {
          maxLength: 90,
        })
        .map((units) => String.fromCharCode(...units)),
    );
    fc.assert(
      fc.property(text, (candidate) => {
        const bytes = new TextEncoder().encode(candidate).length;
        const fine = bytes > 0 && bytes <= 255 && !/\p{Cc}|\p{Cs}/u.test(candidate);
        expect(outcomeOf(() => check(candidate))).toBe(fine ? candidate : Refusal);
      }),
      { numRuns: 2_000 },
    );
  });
});

it.each([
  [scheduledJobId('bill', 1_767_225_600_000), 'bill'],
  [`a@b@${generateId(Date.now())}`, 'a@b'],
  ['welcome:ada@example.com', undefined],
  ['bill@2026-01-01', undefined],
  ['bill', undefined],
])('%s was added by the schedule %s', (id, schedule) => {
  expect(scheduleOf(id)).toBe(schedule);
});

describe('the id of a new job', () => {
  it.each([0, 1_767_225_600_000, 8_640_000_000_000_000, -1])('cannot be an id of a schedule, at %i', (at) => {
    const id = scheduledJobId('bill', at);
    expect(checkJobId(id)).toBe(id);
    expect(() => checkNewJobId(id)).toThrow(InvalidJobIdError);
    expect(() => checkNewJobId(id)).toThrow('ends like the id of a job that a schedule makes');
  });

  it.each([
    'bill',
    'bill@shop.org',
    'bill@2026-01-01',
    'bill@2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00.000Z',
  ])('may be %j', (id) => expect(checkNewJobId(id)).toBe(id));
});

describe('checkQueueName', () => {
  it.each(['a', 'email', 'A.b_c-9', '-', '...', '__proto__', 'constructor', 'x'.repeat(128)])(
    'accepts %j',
    (name) => {
      expect(checkQueueName(name)).toBe(name);
    },
  );

  it.each([
    ['', 'got "" (string)'],
    ['x'.repeat(129), 'got "xxx'],
    ['a b', 'got "a b" (string)'],
    ['a:b', 'got "a:b" (string)'],
    ['{a}', 'got "{a}" (string)'],
    ['é', 'got "é" (string)'],
    ['a\n', 'got "a\\n" (string)'],
    ['a/b', 'got "a/b" (string)'],
    ['@', 'got "@" (string)'],
    ['[', 'got "[" (string)'],
    ['`', 'got "`" (string)'],
    ['{', 'got "{" (string)'],
    [undefined, 'got undefined'],
    [5, 'got 5 (number)'],
    [['email'], 'got ["email"] (array)'],
  ])('refuses %j', (name, got) => {
    let error: unknown;
    try {
      checkQueueName(name);
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(InvalidQueueNameError);
    expect((error as Error).message).toContain(
      'a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, ',
    );
    expect((error as Error).message).toContain(got);
  });

  it('agrees with the pattern [A-Za-z0-9._-]{1,128}', () => {
    const text = fc.oneof(
      fc.string(),
      fc.stringMatching(/^[A-Za-z0-9._-]{1,140}$/),
      fc.stringMatching(/^[ -~]{1,3}$/),
    );
    fc.assert(
      fc.property(text, (name) => {
        expect(isPlainName(name, 128)).toBe(/^[A-Za-z0-9._-]{1,128}$/.test(name));
      }),
      { numRuns: 1_000 },
    );
  });
});

it('refuses a name after an equal one of another type, and after it was refused before', () => {
  for (const name of ['', undefined, Object('work'), 'wo\nrk', 'wo\nrk']) {
    expect(checkJobName('work')).toBe('work');
    expect(() => checkJobName(name)).toThrow(InvalidJobNameError);
    expect(() => checkJobName(name)).toThrow(InvalidJobNameError);
  }
});
