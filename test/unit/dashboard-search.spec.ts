import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseExact, printExact, sortExact } from '#lib/subpaths/dashboard/exact-json.js';
import { priorityText, readPriority } from '#lib/producer/job-list.js';
import { matchOf } from '#lib/subpaths/dashboard/job-search.js';
import { asSearchText, readSearchText, suggestionsFor } from '#lib/subpaths/dashboard/search-text.js';

const paramsOf = (text: string) => {
  const read = readSearchText(text);
  return 'params' in read ? read.params : read.fault;
};

describe('the one-line search', () => {
  it.each([
    ['', {}],
    ['  disk   full ', { contains: 'disk full' }],
    [
      'name:send status:dead error:timeout prio:>5 text',
      { name: 'send', state: 'dead', errorText: 'timeout', priority: '>5', contains: 'text' },
    ],
    ['state:running node:box:12', { state: 'active', worker: 'box:12' }],
    ['worker:box', { state: 'active', worker: 'box' }],
    ['reason:expired', { state: 'dead', reason: 'expired' }],
    ['state:waiting reason:expired', { state: 'waiting', reason: 'expired' }],
    ['group:acme older:1h newer:1d', { group: 'acme', olderThan: '1h', newerThan: '1d' }],
    ['data.tenant.id:7', { where: 'tenant.id=7' }],
    ['data.tenant.id:"7"', { where: 'tenant.id="7"' }],
    [
      'error:"connection reset" "a \\"quoted\\" text"',
      { errorText: 'connection reset', contains: 'a "quoted" text' },
    ],
    ['"email:send"', { contains: 'email:send' }],
    ['TypeError: 10:30 a"b', { contains: 'TypeError: 10:30 a"b' }],
    ['name:email:send', { name: 'email:send' }],
  ])('reads %s', (text, params) => {
    expect(paramsOf(text)).toEqual(params);
  });

  it.each([
    [
      'email:send',
      'There is no key email. The keys are state, name, error, prio, group, reason, worker, older, newer, data.field. A text with a colon needs quotes: "email:…"',
    ],
    ['email:send name:a smtp:25 email:b', /^There is no key email or smtp\. The keys are state, /],
    ['constructor:x', /^There is no key constructor\./],
    ['data:7', /^There is no key data\./],
    ['name: send', 'name: has no value.'],
    ['name:a name:b', 'name: can be given once.'],
    [
      'state:failed',
      'There is no state failed. The states are waiting, active, delayed, completed, dead, cancelled.',
    ],
    ['reason:timeout', /^There is no reason timeout\. The reasons are unrecoverable, /],
  ])('refuses %s, and says what it can read', (text, fault) => {
    expect(paramsOf(text)).toMatch(fault);
  });

  it('shows a text of the address so that it is read as the same text again', () => {
    const word = fc.constantFrom(
      'a',
      'email:send',
      'name:',
      'name:b',
      '"',
      '\\',
      ' ',
      'x y',
      'data.a:1',
      'http://h',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(word).map((words) => words.join('')),
        ),
        (text) => {
          const contains = text.replaceAll(/[\n\r\u2028\u2029]/g, '');
          expect(paramsOf(asSearchText(contains))).toEqual(contains === '' ? {} : { contains });
        },
      ),
    );
    expect(asSearchText('disk full')).toBe('disk full');
  });
});

describe('the suggestions of the one-line search', () => {
  const known = {
    canReadData: true,
    names: ['send', 'Sell', 'email:send', 'two words "quoted"', 'back\\slash'],
    groups: ['acme'],
    workers: ['box', 'box:12'],
  };

  it.each([
    ['st', ['state:']],
    ['disk name:send r', ['disk name:send reason:']],
    ['state:d', ['state:delayed', 'state:dead']],
    ['status:run', ['status:running']],
    ['reason:ex', ['reason:expired']],
    ['disk  name:se', ['disk  name:send', 'disk  name:Sell']],
    ['name:send group:', ['name:send group:acme']],
    ['node:box:', ['node:box:12']],
    ['older:', ['older:10m', 'older:1h', 'older:1d']],
    ['state:dead', []],
    ['email:', []],
    ['constructor:', []],
    ['data.tenant:', []],
  ])('complete the last word of %s', (text, suggestions) => {
    expect(suggestionsFor(text, known)).toEqual(suggestions);
  });

  it('are read as the values that they name', () => {
    const texts = suggestionsFor('name:', known);
    expect(texts.map((text) => paramsOf(text))).toEqual(known.names.map((name) => ({ name })));
  });

  it('are all keys at the start of a word, without the data for a person who may not read it', () => {
    expect(suggestionsFor('disk ', known)).toHaveLength(10);
    expect(suggestionsFor('', known).at(-1)).toBe('data.');
    expect(suggestionsFor('da', { ...known, canReadData: false })).toEqual([]);
  });
});

describe('priorities of a search', () => {
  it.each([
    ['5', 5, 5],
    ['>5', 6, 2_097_151],
    ['>=5', 5, 2_097_151],
    ['<5', 0, 4],
    ['<=5', 0, 5],
    ['1-5', 1, 5],
  ])('are a number or a range: %s', (text, from, to) => {
    expect(readPriority(text, 'priority')).toEqual({ from, to });
    expect(readPriority(priorityText({ from, to }), 'priority')).toEqual({ from, to });
  });

  it.each(['', 'high', '<0', '>2097151', '2097152', '5-1', '-1', '1.5', '=5', '5-', ' 5'])(
    'are not %j',
    (text) => {
      expect(() => readPriority(text, 'priority')).toThrow(
        'priority must be a priority from 0 to 2097151, such as 5, >5, <=5 or 1-5',
      );
    },
  );
});

it('an error is searched as it is shown, not as it is stored', () => {
  const shown = { text: (text: string) => text.replaceAll('4711', '****'), hidesText: true };
  const failure = { name: 'Error', message: 'card 4711 refused' };
  const job: any = { id: 'a', body: '', failure };
  const isMatch = (errorText: string) => matchOf({ errorText }, shown).isMatch(job);
  expect(isMatch('error: CARD ****')).toBe(true);
  expect(isMatch('4711')).toBe(false);
  expect(matchOf({ errorText: 'refused' }, shown).contains).toBeUndefined();
  expect(matchOf({ errorText: 'refused' }, { ...shown, hidesText: false }).contains).toBe('refused');
});

it('keys of JSON are sorted in all objects, and lists, numbers and repeated keys stay', () => {
  const sorted = sortExact(parseExact('{"b":[{"z":1.0,"a":2}],"a":12345678901234567890,"B":0,"a":1}')!);
  expect(printExact(sorted)).toBe('{"B":0,"a":12345678901234567890,"a":1,"b":[{"a":2,"z":1.0}]}');
});
