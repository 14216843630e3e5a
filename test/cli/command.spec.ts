import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { BackOff, Table } from '#lib/subpaths/cli/dispatch.js';
import { main } from '#lib/subpaths/cli/main.js';
import { ROOT } from '../support/sources.js';
import { godwit, runHere } from './support.js';

const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };

const run = (...args: string[]) => runHere(args);
/** As a process of its own: its exit code, and all that it writes. */
const start = (...args: string[]) => godwit(args).result();

describe('what is asked of the command itself', () => {
  it.each([['--help'], ['-h']])('%s: all commands', async (flag) => {
    const { code, out, err } = await run(flag);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^Usage: godwit <command>[\s\S]+dispatch +moves due tasks/);
  });

  it('every command of the help is on its page', async () => {
    const { out } = await run('--help');
    const commands = out.slice(out.indexOf('Commands:'), out.indexOf('Options of all commands'));
    const names = Array.from(commands.matchAll(/^ {2}(\w+)/gm), ([, name]) => name!);
    expect(names).toContain('queues');
    const page = readFileSync(join(ROOT, 'docs/operating/cli.md'), 'utf8');
    const missing = names.filter((name) => !new RegExp(`^\\| [^|]*\`${name}\\b`, 'm').test(page));
    expect(missing).toEqual([]);
  });

  it('--version: that of the package', async () => {
    expect(await start('--version')).toEqual({ code: 0, out: `${PACKAGE.version}\n`, err: '' });
  });

  it('version: as JSON too, and without further arguments', async () => {
    const { code, out } = await run('version', '--json');
    expect([code, JSON.parse(out)]).toEqual([0, { version: PACKAGE.version }]);
    expect(await run('version', 'x')).toMatchObject({ code: 2, err: 'godwit: unexpected argument "x"\n' });
  });

  it.each([['--help'], ['-h']])('dispatch %s: every option with its default', async (flag) => {
    const { code, out, err } = await run('dispatch', flag);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^Usage: godwit dispatch/);
    expect(out).toMatch(/-u, --redis-url .*redis:\/\/localhost:6379\)/);
    expect(out).toMatch(/-d, --delayed-task-zset-key .*\(default: delayedtaskset\)/);
    expect(out).toMatch(/-r, --ready-task-list-key .*\(default: readytasklist\)/);
    expect(out).toMatch(/-n, --batch-size .*\(default: 10\)/);
    expect(out).toMatch(/-v, --verbose/);
    expect(out.split('\n').filter((line) => line.length > 110)).toEqual([]);
  });
});

it('options of all commands may be before the command', async () => {
  const { code, err } = await run('-u', 'redis://127.0.0.1:1', '--json', 'queues');
  expect([code, err]).toEqual([1, expect.stringMatching(/127\.0\.0\.1:1/)]);
  expect((await run('--url=redis://127.0.0.1:1', 'queues', '--help')).out).toMatch(/^Usage: godwit queues/);
  expect((await run('--help', 'queues')).out).toMatch(/^Usage: godwit queues/);
  expect((await run('--json', '--help')).out).toMatch(/^Usage: godwit <command>/);
});

it('errors with --json are an object with code and message on one line', async () => {
  const failed = async (...args: string[]) => {
    const { code, out, err } = await start(...args);
    expect([out, err.trimEnd().split('\n')]).toEqual(['', [err.trimEnd()]]);
    return [code, JSON.parse(err)];
  };
  expect(await failed('queues', '--josn', '--json')).toEqual([
    2,
    { code: 'GODWIT_USAGE', message: 'unknown option --josn; did you mean --json?' },
  ]);
  expect(await failed('--json')).toEqual([2, { code: 'GODWIT_USAGE', message: 'the command is missing' }]);
  expect(await failed('queues', '--json', '-u', 'redis://127.0.0.1:1')).toEqual([
    1,
    { code: 'GODWIT_REDIS_UNAVAILABLE', message: expect.stringContaining('127.0.0.1:1') },
  ]);
});

it('a program that runs commands one after the other collects no listeners', async () => {
  const { stdout, stderr } = process;
  const ofSignals = () => ['SIGINT', 'SIGTERM'].map((signal) => process.listenerCount(signal));
  const ofStreams = () => [stdout, stderr].map((stream) => stream.listenerCount('error'));
  const before = ofSignals();
  const write = vi.spyOn(stdout, 'write').mockReturnValue(true);
  try {
    expect(await main(['acl'])).toBe(0);
    const once = ofStreams();
    for (let i = 0; i < 3; i++) expect(await main(['acl'])).toBe(0);
    expect([ofSignals(), ofStreams()]).toEqual([before, once]);
  } finally {
    write.mockRestore();
  }
});

it('where to find the help follows the error, the whole help is before it', async () => {
  const linesOf = async (...args: string[]) => (await start(...args)).err.trimEnd().split('\n');
  expect(await linesOf('jobs')).toEqual([
    expect.stringMatching(/^godwit: an argument is missing: godwit jobs <queue>/),
    'see godwit jobs --help',
  ]);
  const whole = await linesOf();
  expect([whole[0], whole.at(-1)]).toEqual([
    'Usage: godwit <command> [options]',
    'godwit: the command is missing',
  ]);
});

describe('wrong arguments: usage and code 2', () => {
  it.each([
    ['no command', [], 'the command is missing'],
    ['options without a command', ['--prefix', 'shop', '-q'], 'the command is missing'],
    ['a misspelt option without a command', ['--josn'], 'unknown option --josn; did you mean --json?'],
    ['another command', ['dispatcher'], 'unknown command dispatcher; did you mean dispatch?'],
    ['a misspelt command', ['quque'], 'unknown command quque; did you mean queues?'],
    ['a command like no other', ['xyz'], 'unknown command xyz'],
    ['an unknown option', ['dispatch', '--redis'], 'unknown option --redis; did you mean --redis-url?'],
    [
      'the start of an option',
      ['dead', 'q', '--newer', '2h'],
      'unknown option --newer; did you mean --newer-than?',
    ],
    ['a misspelt option', ['queues', '--josn'], 'unknown option --josn; did you mean --json?'],
    ['an unknown short option', ['dispatch', '-x'], 'unknown option -x'],
    ['an option that is no text', ['queues', '--a\nb'], 'unknown option --a\\u000ab'],
    ['an argument', ['dispatch', 'now'], 'unexpected argument "now"'],
    ['no argument', ['jobs'], 'an argument is missing: godwit jobs <queue> [state]'],
    ['an argument too few', ['add', 'q'], 'an argument is missing: godwit add <queue> <name>'],
    ['no shell', ['completion'], 'completion: name a shell: bash, zsh or fish'],
    ['an option without its value', ['dispatch', '-n'], '-n needs a value'],
    [
      'an option in place of a value',
      ['jobs', 'q', '--limit', '--yes'],
      '--limit needs a value, got "--yes"; write a value that begins with - as --limit=--yes',
    ],
    ['a value for a flag', ['dispatch', '--verbose=yes'], '--verbose takes no value'],
    [
      'words for the batch size',
      ['dispatch', '-n', 'ten'],
      '--batch-size must be a whole number from 1 to 1000',
    ],
    ['digits and words', ['dispatch', '-n', '10x'], 'got "10x"'],
    ['no batch', ['dispatch', '-n', '0'], 'got "0"'],
    ['less than none', ['dispatch', '--batch-size=-5'], 'got "-5"'],
    ['a part of a task', ['dispatch', '-n', '1.5'], 'got "1.5"'],
    ['an empty batch size', ['dispatch', '-n', ''], 'got ""'],
    ['a batch that would hold up Redis', ['dispatch', '-n', '1001'], 'got "1001"'],
    ['a number beyond numbers', ['dispatch', '-n', '9'.repeat(400)], 'got "999'],
    ['no URL', ['dispatch', '-u', 'localhost'], '--redis-url must be a redis:// or rediss:// URL'],
    ['a URL of something else', ['dispatch', '-u', 'http://localhost'], '--redis-url must be'],
    ['an empty key', ['dispatch', '-d', ''], '--delayed-task-zset-key must be the name of a key'],
    ['another empty key', ['dispatch', '-r', ''], '--ready-task-list-key must be the name of a key'],
    [
      'one key for both',
      ['dispatch', '-d', 'a', '-r', 'a'],
      'must be another key than --delayed-task-zset-key',
    ],
  ])('%s', async (_, args, words) => {
    const { code, out, err } = await run(...args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    const lines = err.trimEnd().split('\n');
    const isLong = lines.length > 2;
    const [message, hint] = isLong ? [lines.at(-1), lines[0]] : lines;
    expect(message).toMatch(/^godwit: /);
    expect(message).toContain(words);
    expect(isLong).toBe(words === 'the command is missing');
    expect(hint).toMatch(/--help|^Usage: godwit /);
  });

  it('does not show the password of a bad URL', async () => {
    const { code, err } = await run('dispatch', '-u', 'redis://me:s3cret@host:port');
    expect(code).toBe(2);
    expect(err).not.toContain('s3cret');
  });
});

describe('the back-off', () => {
  const idle = { dispatched: 0, dueInMs: null };

  it('is 0, 1, 1, 2, 3, 5, 8, 13 s and stays there, and starts over as soon as something moved', () => {
    const backOff = new BackOff();
    const seconds = (answer: typeof idle) => backOff.after(answer) / 1000;
    expect(Array.from({ length: 10 }, () => seconds(idle))).toEqual([0, 1, 1, 2, 3, 5, 8, 13, 13, 13]);
    expect(seconds({ ...idle, dispatched: 1 })).toBe(0);
    expect(Array.from({ length: 4 }, () => seconds(idle))).toEqual([0, 1, 1, 2]);
  });

  it('ends when the next task is due', () => {
    const backOff = new BackOff();
    backOff.after(idle);
    expect(backOff.after({ dispatched: 0, dueInMs: 400 })).toBe(400);
    expect(backOff.after({ dispatched: 0, dueInMs: 60_000 })).toBe(1_000);
    expect(backOff.after({ dispatched: 0, dueInMs: 1_999 })).toBe(1_999);
  });
});

describe('the table', () => {
  it('has its columns under their names', () => {
    const table = new Table();
    const text =
      table.line({ dispatched: 10, delayed: 999_990, ready: 1_234_567, waitMs: 0 }) +
      table.line({ dispatched: 0, delayed: 0, ready: 3, waitMs: 13_000 }) +
      table.line({ dispatched: 0, delayed: 0, ready: 3, waitMs: 37 });
    expect(text).toBe(
      'dispatched     delayed       ready  backing-off (s)\n' +
        '        10      999990     1234567                0\n' +
        '         0           0           3               13\n' +
        '         0           0           3              0.1\n',
    );
  });

  it('has its header again every 50 lines', () => {
    const table = new Table();
    const row = { dispatched: 1, delayed: 1, ready: 1, waitMs: 0 };
    const lines = Array.from({ length: 120 }, () => table.line(row))
      .join('')
      .trimEnd()
      .split('\n');
    const heads = lines.flatMap((line, i) => (line.startsWith('dispatched') ? [i] : []));
    expect(heads).toEqual([0, 51, 102]);
    expect(lines.length).toBe(123);
  });
});
