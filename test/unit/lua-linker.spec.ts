import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { LETTERED_JOBS } from '#lib/engine/keys.js';
import '#lib/engine/redis-engine.js';
import { allScripts, withSource, type SomeShape } from '#lib/engine/script.js';
import { parseLua } from '../../tools/lua/file.js';
import { faultsIn, link } from '../../tools/lua/link.js';

const SHAPE: SomeShape = {
  name: 'main',
  memory: 'allow',
  args: { max: 'int', reason: 'text' },
  lists: ['ids'],
  reply: (raw) => raw,
};

function libraryOf(files: Readonly<Record<string, string>>) {
  return new Map(Object.entries(files).map(([name, text]) => [name, parseLua(name, text)]));
}

const linked = (files: Readonly<Record<string, string>>) => link(SHAPE, libraryOf(files)).lines;
/** The text that Redis gets, after the flags and the constants. */
const textOf = (files: Readonly<Record<string, string>>) =>
  linked(files)
    .slice(2)
    .map(({ text }) => text);
const faults = (files: Readonly<Record<string, string>>) => faultsIn(libraryOf(files));

const PUSH = "-- In front.\nlocal function push(id)\n  redis.call('LPUSH', key_wait, id)\nend\n";

describe('the linker', () => {
  it('puts the flags and the bounds of lists at the start, and replaces names by numbers', () => {
    const lines = linked({ main: "return { arg_max, key_dead, arg_reason, key_wait, ids_first, 'arg' }" });
    expect(lines.map(({ text }) => text)).toEqual([
      '#!lua flags=allow-oom',
      'local ids_first, ids_last = 4, 4 + tonumber(ARGV[3]) - 1',
      "return { tonumber(ARGV[1]), KEYS[2], ARGV[2], KEYS[1], ids_first, 'arg' }",
    ]);
  });

  it('includes a needed function once, and no unused one', () => {
    const text = textOf({
      main: '--@needs a, b\n\nboth()\npush(1)\n',
      'shared/a': '--@needs b\nlocal function both()\n  push(1)\nend\nlocal function idle()\nend\n',
      'shared/b': PUSH,
    });
    const push = ['local function push(id)', "redis.call('LPUSH', KEYS[1], id) end"];
    expect(text).toEqual([...push, 'local function both()', 'push(1) end', 'both()', 'push(1)']);
  });

  it('puts a function into the branch that alone needs it, and never into a loop or a function', () => {
    const files = { 'shared/b': PUSH };
    const branch = textOf({ ...files, main: '--@needs b\nif arg_max > 1 then\n  push(1)\nend\n' });
    expect(branch.indexOf('if tonumber(ARGV[1]) > 1 then')).toBe(0);
    const two = '--@needs b\nif arg_max > 1 then\n  push(1)\nelse\n  push(2)\nend\n';
    expect(textOf({ ...files, main: two }).indexOf('if tonumber(ARGV[1]) > 1 then')).toBe(2);
    const loop = '--@needs b\nfor i = 1, 2 do\n  push(i)\nend\n';
    expect(textOf({ ...files, main: loop }).indexOf('for i = 1, 2 do')).toBe(2);
    const inFunction = '--@needs b\nlocal function go()\n  push(1)\nend\ngo()\n';
    expect(textOf({ ...files, main: inFunction }).indexOf('local function go()')).toBe(2);
  });

  it('adds its type to each key of a check', () => {
    const types = 'local function check_types(...)\n  return ...\nend\n';
    const text = textOf({ main: '--@needs types\ncheck_types(key_wait, key_dead)\n', 'shared/types': types });
    expect(text.at(-1)).toBe("check_types(KEYS[1], 'list', KEYS[2], 'zset')");
  });

  it('gives a script the keys that it and its functions name, always in the same order', () => {
    const main = '--@needs b\npush(key_active)\nreturn KEYS[at_letter + 65], key_dead\n';
    const { keys } = link(SHAPE, libraryOf({ main, 'shared/b': PUSH }));
    expect(keys).toEqual(['wait', 'dead', ...LETTERED_JOBS, 'active']);
  });

  it('maps each line to its source', () => {
    const lines = linked({ main: '--@needs b\n\npush(1) -- now\n', 'shared/b': PUSH });
    expect(lines.slice(2).map(({ file, line }) => `${file}:${line}`)).toEqual([
      'shared/b:2',
      'shared/b:3',
      'main:3',
    ]);
  });

  it('refuses cycles', () => {
    const circle = {
      main: '--@needs a\none()\n',
      'shared/a': '--@needs b\nlocal function one()\n  two()\nend\n',
      'shared/b': '--@needs a\nlocal function two()\n  one()\nend\n',
    };
    expect(() => textOf(circle)).toThrow(
      'shared/a.lua: functions call each other in a cycle: one -> two -> one',
    );
    expect(faults(circle)[0]).toBe(
      'shared/a.lua:1: fragments need each other in a cycle: shared/a -> shared/b -> shared/a',
    );
  });

  it('refuses fragments with code that runs when they are loaded', () => {
    expect(() => parseLua('shared/a', "local now = redis.call('TIME')\n")).toThrow(
      'shared/a.lua:1: a fragment may contain only functions, and no code that runs when it is included',
    );
  });

  it('refuses unknown names, such as those of fragments that the header does not name', () => {
    expect(() => textOf({ main: 'return\tnothing\n' })).toThrow(
      'main.lua:1: nothing is not defined in the script main',
    );
    expect(() => textOf({ main: 'push(1)\n', 'shared/b': PUSH })).toThrow('push is not defined');
    expect(() => textOf({ main: 'return key_nothing\n' })).toThrow('key_nothing is not defined');
    expect(() => textOf({ main: 'x = = 1' })).toThrow('main.lua: [1:');
    expect(() => textOf({ main: '--@needs b\nreturn 1\n', 'shared/c': PUSH })).not.toThrow();
    expect(() => textOf({ main: '--@needs b\npush(1)\n', 'shared/c': PUSH })).toThrow(
      'there is no shared/b.lua',
    );
  });

  it('refuses a local of the script that has the name of a function of a fragment', () => {
    const files = { 'shared/a': '--@needs b\nlocal function one()\n  push(1)\nend\n', 'shared/b': PUSH };
    expect(() => textOf({ ...files, main: '--@needs a\nlocal push = 1\none(push)\n' })).toThrow(
      'main.lua:2: push is a function of a fragment that it needs',
    );
  });
});

describe('the linter of Lua', () => {
  it.each([
    ['local a = 1', 'main.lua:1: local a is never read'],
    ['local function a() end', 'main.lua:1: function a is never read'],
    ['return function(a) end', 'main.lua:1: parameter a is never read'],
    ['local a = 1\nif a then\n  local a = 2\n  return a\nend', 'main.lua:3: local a hides that of line 1'],
    [
      'for type = 1, 2 do redis.call(type) end',
      'main.lua:1: loop type has a name that the linker or Redis defines',
    ],
    ['waiting = 1', 'main.lua:1: assigns waiting, which it does not declare'],
    ['--@needs b\nreturn 1', 'main.lua:1: needs shared/b but calls none of its functions'],
    ['--@needs b\nlocal push = 1\nreturn push', 'main.lua:2: local push hides a function of a fragment'],
  ])('finds a mistake in %j', (main, fault) => {
    expect(faults({ main, 'shared/b': PUSH })).toContain(fault);
  });

  it('accepts correct code', () => {
    const main = '--@needs b\nfor _, id in ipairs(ARGV) do push(id) end\nlocal n = 0\nn = n + 1\nreturn n\n';
    expect(faults({ main, 'shared/b': PUSH })).toEqual([]);
  });

  it('finds nothing in our scripts, and the engine sends the linked texts', () => {
    const args = ['--import', './tools/typescript.mjs', 'tools/lua/generate.ts', '--check'];
    const cwd = fileURLToPath(new URL('../..', import.meta.url));
    const { status, stderr } = spawnSync(process.execPath, args, { cwd, encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});

describe('an error within a script', () => {
  const exchange = allScripts().find(({ name }) => name === 'exchange')!;
  const line = exchange.text.split('\n').findIndex((text) => text.includes("redis.call('SMISMEMBER'")) + 1;

  it('names the file and the line of its source', () => {
    const said = `ERR user_script:${line}: no luck script: ${exchange.sha}, on @user_script:${line}.`;
    const found = /^ERR shared\/hold\.lua:\d+: no luck \(script exchange, shared\/hold\.lua:\d+\)$/;
    expect(withSource(said, 'claimAtBell')).toMatch(found);
    expect(withSource(said.replaceAll(`:${line}`, ':1'), '')).toContain('exchange.ts:1');
    // Valkey 9 says so.
    const short = said.replace(`${exchange.sha}, `, '');
    expect(withSource(short, 'exchange')).toMatch(found);
    expect(withSource(short, 'ping')).toBe(short);
  });

  it('is unchanged if the script is not ours', () => {
    const said = `ERR no luck script: ${'0'.repeat(40)}, on @user_script:1.`;
    expect(withSource(said, 'exchange')).toBe(said);
    expect(withSource('ERR no luck', 'exchange')).toBe('ERR no luck');
  });
});

it('no script is too long', () => {
  const lengths = allScripts().map(({ name, text }) => [name, text.trimEnd().split('\n').length] as const);
  expect(lengths.filter(([, lines]) => lines > 650)).toEqual([]);
});
