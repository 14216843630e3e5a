import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { instead, type Patch } from '../support/patched-client.js';
import { useServer } from '../support/server.js';
import { Interleaving } from './interleaving.js';
import { runsOf } from './runs.js';

const server = useServer();
const runs = runsOf('interleaved', 0.1);

it.each([
  ['', false],
  [' in a queue with limits and groups', true],
])(
  'keeps every promise%s, whoever comes first',
  async (_, isGrouped) => {
    const play = await Interleaving.open(server.url, undefined, isGrouped);
    try {
      const playing = fc.assert(
        play.property(() => runs.tick()),
        runs.parameters as never,
      );
      await expect(playing).resolves.toBeUndefined();
    } finally {
      await play.close();
    }
  },
  runs.timeout,
);

/** Broken engines. The rules alone must find each of them. */
const WORSE: Record<string, Patch> = {
  'takes what anyone says of a job': instead(
    'exchange',
    [/if (redis\.call\('SREM', KEYS\[\d+\], id\)) == 1 then return true end/, '$1 do return true end'],
    ['if member[i] == 0 then return false end', ''],
    ["if last_seq == nil and seq > 1 then return { 'unknown-worker', now } end", ''],
  ),
  'gives a job out and keeps no note of it': instead('exchange', [
    /redis\.call\('SADD', KEYS\[\d+\], unpack\(ids\)\)/,
    '#ids',
  ]),
  'does a repeated exchange again': instead('exchange', ['if last_seq == seq then', 'if false then']),
  'takes two exchanges on their way for one line of numbers': instead('exchange', [
    /local suffix = .* and '2' or ''/,
    "local suffix = ''",
  ]),
  'adds again what is added again': instead('enqueue', [
    /if last_seq == tonumber\(ARGV\[\d+\]\) then/,
    'if false then',
  ]),
  'never takes jobs back': instead('recover', [
    "if lease == nil then return { 'alive' } end",
    "do return { 'alive' } end",
  ]),
  'takes jobs back before their lease is over': instead('recover', [
    "if wait_ms > 0 then return { 'doubted', wait_ms } end",
    '',
  ]),
  'gives a cancelled job to another worker': instead('recover', [
    /if not is_cancelled\(taken\[i\], .*?\) then/,
    'if true then',
  ]),
  'runs delayed jobs at once': instead('exchange', [
    /(local due = redis\.call\('ZRANGE', KEYS\[\d+\], '-inf'), '\(' \.\. now \+ 1, /,
    "$1, '+inf', ",
  ]),
};

/** More of them, for queues with limits and groups. */
const WORSE_AT_GROUPS: Record<string, Patch> = {
  'counts no running jobs of a group': instead('claim-limited', ['and running_of(text) or 0', 'and 0']),
  'counts jobs that have ended': instead('exchange', [
    /return #leaving > 0 and redis\.call\('ZREM', KEYS\[\d+\], unpack\(leaving\)\) > 0/,
    '',
  ]),
  'looks at no group again whose jobs have ended': instead('exchange', [
    /if #freed > 0 then redis\.pcall\('ZADD', KEYS\[\d+\], 'NX', unpack\(freed\)\) end/,
    '',
  ]),
  'starts the next of a strict order while the one before waits for its retry': instead('claim-limited', [
    "if rule.order ~= 'strict' then return",
    'if true then return',
  ]),
  'does a repeated claim again': instead('claim-limited', ['if last_seq == seq then', 'if false then']),
};

const ALL: Record<string, Patch> = { ...WORSE, ...WORSE_AT_GROUPS };

it.each(Object.keys(ALL))('detects an engine that %s', { timeout: 120_000 }, async (name) => {
  const play = await Interleaving.open(server.url, ALL[name], name in WORSE_AT_GROUPS);
  try {
    const limits = { numRuns: 300, seed: 1, endOnFailure: true };
    expect(
      await fc.check(
        play.property(() => {}),
        limits,
      ),
    ).toMatchObject({ failed: true });
  } finally {
    await play.close();
  }
});
