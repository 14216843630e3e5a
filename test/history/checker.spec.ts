import { describe, expect, it } from 'vitest';
import { sourcesIn } from '../support/sources.js';
import { check } from './check.js';
import type { Call, Verb } from './record.js';
import { callsOf, Recorder } from './recorder.js';

type Given = Partial<Omit<Call, 'verb'>>;
type Line = readonly [Verb, Given];

/** Calls of one ms each, one after the other, unless stated otherwise. */
function history(...given: readonly Line[]): Call[] {
  return given.map(([verb, call], i) => ({
    process: 'p',
    queue: 'q',
    id: 'a',
    start: i * 10,
    end: i * 10 + 1,
    outcome: 'ok',
    value: null,
    ...call,
    verb,
    args: call.args ?? {},
  }));
}

const add = (tag = 't', given: Given = {}, args = {}): Line => [
  'add',
  { value: 'added', args: { tag, retention: 3_600_000, ...args }, ...given },
];
const run = (tag = 't', ending = 'returned', given: Given = {}, nth = 1): Line => [
  'run',
  { process: 'w', args: { tag, run: nth, attempt: 1 }, value: { ending }, ...given },
];
const settle = (value = 'accepted', nth = 1, given: Given = {}): Line => [
  'settle',
  { process: 'w', args: { run: nth }, value, ...given },
];
const call = (verb: Verb, value: unknown, given: Given = {}): Line => [verb, { value, ...given }];
const final = (value: unknown) => call('get', value, { args: { final: true } });
const open: Given = { end: null, outcome: 'indeterminate' };
const completed = { state: 'completed', tag: 't' };

function broken(...given: readonly Line[]): string[] {
  return [...new Set(check(history(...given)).findings.map(({ promise }) => promise))];
}

describe('a history in which every promise is kept', () => {
  it.each<[string, readonly Line[]]>([
    ['a job that ran', [add(), run(), settle(), final(completed)]],
    ['a job that leaves nothing', [add('t', {}, { retention: 0 }), run(), settle(), final(null)]],
    ['a duplicate', [add(), call('add', 'duplicate', { args: { tag: 'u' } }), run(), settle()]],
    ['an add without an answer that did nothing', [add('t', open), final(null)]],
    [
      'an add without an answer that was applied late',
      [add('t', open), call('get', null), run(), settle(), final(completed)],
    ],
    [
      'a cancel without an answer, and a run',
      [add(), call('cancel', null, open), run(), settle(), final(completed)],
    ],
    ['a cancel without an answer, and no run', [add(), call('cancel', null, open), final(null)]],
    [
      'a cancelled job, and one more of its id',
      [add(), call('cancel', 'cancelled'), add('u'), run('u'), settle()],
    ],
    [
      'a running job that was told to stop',
      [
        add(),
        run('t', 'failed', { end: 25 }),
        call('cancel', 'signalled', { start: 22, end: 23 }),
        settle('accepted', 1, { start: 26, end: 27 }),
        final(null),
      ],
    ],
    [
      'a job given back before it began',
      [add(), call('get', { state: 'active', tag: 't' }), call('cancel', 'cancelled'), final(null)],
    ],
    [
      'a run of a worker that lost its lease',
      [
        add(),
        run('t', 'returned', { end: 45 }),
        run('t', 'returned', {}, 2),
        settle('accepted', 2),
        settle('refused', 1, { start: 46, end: 47 }),
        final(completed),
      ],
    ],
    [
      'a dead job that was retried',
      [
        add(),
        run('t', 'buried'),
        settle(),
        call('retry', 'retried'),
        run('t', 'returned', {}, 2),
        settle('accepted', 2),
        final(completed),
      ],
    ],
    ['a refused add', [add('t', { outcome: 'error', value: 'full' }), final(null)]],
    [
      'a handler whose process was killed',
      [
        add(),
        run('t', 'returned', { ...open, value: null }),
        run('t', 'returned', {}, 2),
        settle('accepted', 2),
        final(completed),
      ],
    ],
    ['a clean without an answer', [add(), call('clean', null, { ...open, id: '' }), final(null)]],
    ['a clean that names the job', [add(), call('clean', ['a'], { id: '' }), final(null)]],
    [
      'a settlement that was answered the second time',
      [
        add(),
        run(),
        settle('indeterminate', 1, { ...open, value: null }),
        settle('refused'),
        final(completed),
      ],
    ],
    [
      'two calls at once, of which either may be first',
      [
        add('t', { start: 0, end: 9 }),
        call('get', null, { start: 5, end: 8 }),
        run(),
        settle(),
        final(completed),
      ],
    ],
  ])('finds nothing: %s', (_, given) => {
    expect(check(history(...given)).findings).toEqual([]);
  });
});

describe('a planted violation', () => {
  it.each<[string, readonly string[], readonly Line[]]>([
    ['a job that is gone', ['not lost', 'linearizable'], [add(), final(null)]],
    ['a job that is left', ['not lost'], [add(), final({ state: 'waiting', tag: 't' })]],
    ['a run nobody asked for', ['no phantom', 'linearizable'], [run()]],
    ['a run of a refused add', ['no phantom', 'linearizable'], [add('t', { outcome: 'error' }), run()]],
    [
      'a run of a duplicate',
      ['no phantom', 'linearizable'],
      [add(), call('add', 'duplicate', { args: { tag: 'u' } }), run('u')],
    ],
    [
      'a duplicate that was accepted',
      ['linearizable'],
      [add(), add('u'), final({ state: 'waiting', tag: 'u' })].slice(0, 2),
    ],
    ['a duplicate of nothing', ['linearizable'], [call('add', 'duplicate', { args: { tag: 'u' } })]],
    [
      'a run after a cancel',
      ['not run after it was taken out', 'linearizable'],
      [add(), call('cancel', 'cancelled'), run(), settle()],
    ],
    [
      'a run after a remove',
      ['not run after it was taken out', 'linearizable'],
      [add(), call('remove', 'removed'), run(), settle()],
    ],
    [
      'a run after a clean',
      ['not run after it was taken out', 'linearizable'],
      [add(), call('clean', null), run(), settle()],
    ],
    [
      'a cancel that was not done',
      ['linearizable'],
      [add(), call('cancel', 'cancelled'), call('get', { state: 'waiting', tag: 't' })],
    ],
    [
      'a cancel that says there is nothing',
      ['linearizable'],
      [add(), call('cancel', 'not-found'), run(), settle()],
    ],
    [
      'a remove of a running job',
      ['linearizable'],
      [
        add(),
        run('t', 'returned', { end: 35 }),
        call('remove', 'removed'),
        settle('accepted', 1, { start: 36, end: 37 }),
      ],
    ],
    ['a read of what is not there', ['linearizable'], [call('get', { state: 'waiting', tag: 't' })]],
    ['a read of nothing where a job is', ['linearizable'], [add(), call('get', null), run(), settle()]],
    [
      'a job settled twice',
      ['settled once', 'linearizable'],
      [
        add(),
        run('t', 'returned', { end: 35 }),
        run('t', 'returned', {}, 2),
        settle('accepted', 2),
        settle('accepted', 1, { start: 46, end: 47 }),
      ],
    ],
    [
      'a settlement of a lost lease',
      ['linearizable'],
      [
        add(),
        run('t', 'failed', { end: 25 }),
        run('t', 'failed', { start: 20, end: 24 }, 2),
        settle('accepted', 2, { start: 24, end: 24.5 }),
        settle('accepted', 1, { start: 26, end: 27 }),
      ],
    ],
    ['a delayed job that began early', ['not early'], [add('t', {}, { delay: 1_000 }), run(), settle()]],
    [
      'an attempt before its backoff',
      ['not early'],
      [
        add('t', {}, { backoff: 1_000, attempts: 3 }),
        run('t', 'failed'),
        settle(),
        run('t', 'returned', {}, 2),
        settle('accepted', 2),
      ],
    ],
    [
      'a snooze cut short',
      ['not early'],
      [
        add(),
        run('t', 'snoozed', { value: { ending: 'snoozed', snooze: 500 } }),
        settle(),
        run('t', 'returned', {}, 2),
        settle('accepted', 2),
      ],
    ],
    [
      'too many attempts',
      ['attempts kept'],
      [
        add('t', {}, { attempts: 1 }),
        run('t', 'failed'),
        settle(),
        run('t', 'failed', {}, 2),
        settle('accepted', 2),
      ],
    ],
    [
      'a wrong result',
      ['right result'],
      [
        add(),
        run('t', 'returned', { value: { ending: 'returned', result: 1 } }),
        settle(),
        call('wait', 2, { args: { tag: 't' } }),
      ],
    ],
    [
      'an expired job that had begun',
      ['started jobs do not expire'],
      [
        add('t', {}, { expiresIn: 5 }),
        run('t', 'snoozed', { value: { ending: 'snoozed', snooze: 1 } }),
        settle(),
        call('get', { state: 'dead', tag: 't', reason: 'expired' }),
      ],
    ],
    [
      'an occurrence left out',
      ['one job for each occurrence'],
      [
        call('schedule', 'created', { id: '', args: { tag: 's', every: 1_000 } }),
        run('s', 'returned', { id: 's@2026-01-01T00:00:00.000Z' }),
        run('s', 'returned', { id: 's@2026-01-01T00:00:02.000Z' }, 2),
      ],
    ],
    [
      'an occurrence settled twice',
      ['one job for each occurrence'],
      [
        call('schedule', 'created', { id: '', args: { tag: 's', every: 1_000 } }),
        run('s', 'returned', { id: 's@2026-01-01T00:00:00.000Z' }),
        settle(),
        run('s', 'returned', { id: 's@2026-01-01T00:00:00.000Z' }, 2),
        settle('accepted', 2),
      ],
    ],
    [
      'a job gone by a clean that did not name it',
      ['linearizable', 'not lost'],
      [add(), call('clean', ['b'], { id: '' }), final(null)],
    ],
    [
      'a wrong order',
      ['ordered'],
      [
        add(),
        add('u', { id: 'b' }),
        run('u', 'returned', { id: 'b' }),
        settle('accepted', 1, { id: 'b' }),
        run('t', 'returned', {}, 2),
        settle('accepted', 2),
        call('batch', null, { id: '', args: { tags: ['t', 'u'] } }),
      ],
    ],
    [
      'a run while paused',
      ['paused'],
      [add(), call('pause', true, { id: '' }), run(), settle(), call('resume', true, { id: '' })],
    ],
  ])('is found: %s', (_, promises, given) => {
    expect(broken(...given).toSorted()).toEqual(promises.toSorted());
  });

  it('is not reported for a process that a fault kept from learning about a pause', () => {
    const ran = [add(), call('pause', true, { id: '' }), run(), settle(), call('resume', true, { id: '' })];
    const fault = (met: string) =>
      call('fault', null, { id: '', args: { kind: 'delay', met }, start: 0, end: 20 });
    expect(broken(...ran, fault('w'))).toEqual([]);
    expect(broken(...ran, fault('another'))).toEqual(['paused']);
  });

  it('is not reported for a store that may have lost the write, and is counted', () => {
    const fault = call('fault', null, {
      id: '',
      args: { kind: 'aof-cut', forgets: { from: 0, to: 35 } },
      start: 30,
      end: 40,
    });
    expect(check(history(add(), final(null), fault))).toMatchObject({
      excused: 1,
      forgotten: 1,
      findings: [],
    });
    const later = call('fault', null, {
      id: '',
      args: { kind: 'aof-cut', forgets: { from: 30, to: 35 } },
      start: 30,
      end: 40,
    });
    expect(check(history(add(), final(null), later)).findings).not.toEqual([]);
  });
});

describe('the history of a process', () => {
  it('has the calls in flight when it was killed, even in the middle of a line', () => {
    let lines = '';
    const recorder = new Recorder('p', (line) => (lines += line));
    recorder.begin('add', 'q', 'a', { tag: 't' })('ok', 'added');
    recorder.begin('cancel', 'q', 'a');
    expect(callsOf(`${lines}{"n":2,"e`)).toMatchObject([
      { verb: 'add', outcome: 'ok', value: 'added', end: expect.any(Number) },
      { verb: 'cancel', outcome: 'indeterminate', end: null },
    ]);
  });

  it('is checked without any output of the library', () => {
    const own = sourcesIn('test/history', ['.ts']).filter(({ path }) => !path.endsWith('.spec.ts'));
    expect(own.length).toBeGreaterThan(4);
    for (const { path, text } of own) {
      const imports = [...text.matchAll(/from '([^']+)'/g)].map(([, name]) => name!);
      expect(
        imports.filter((name) => !/^(\.\/|node:)/.test(name)),
        path,
      ).toEqual([]);
    }
  });
});
