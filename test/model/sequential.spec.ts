import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RULES } from '#lib/job/rules.js';
import { instead, type Patch } from '../support/patched-client.js';
import { useServer } from '../support/server.js';
import { sequences, sequencesOfLimits, sequencesOfMore } from './commands.js';
import { Rig } from './rig.js';
import { runsOf } from './runs.js';
import { Scene } from './scene.js';

// Commands one after another on Redis and on the memory engine. After each, answers, keys and events are compared. Time
// is one of the commands.
const server = useServer();
let rig: Rig;

beforeAll(async () => {
  rig = await Rig.open(server.url);
});
afterAll(() => rig.close());

const COMMANDS = 40;
/** Some of these make several calls. */
const COMMANDS_OF_LIMITS = 32;
const runs = runsOf('sequential', 0.8);

it(
  'behaves and answers like the memory engine, whatever is lost, repeated, late, or damaged by hand',
  async () => {
    const property = fc.asyncProperty(sequences(COMMANDS, runs.replayPath), async (commands) => {
      runs.tick();
      await fc.asyncModelRun(async () => ({ model: await Scene.open(rig), real: rig }), commands);
    });
    await expect(fc.assert(property, runs.parameters as never)).resolves.toBeUndefined();
  },
  runs.timeout,
);

const runsOfLimits = runsOf('limits', 0.3);

it(
  'behaves and answers like the memory engine with limits, groups and keys',
  async () => {
    const property = fc.asyncProperty(
      sequencesOfLimits(COMMANDS_OF_LIMITS, runsOfLimits.replayPath),
      async (commands) => {
        runsOfLimits.tick();
        await fc.asyncModelRun(async () => ({ model: await Scene.open(rig), real: rig }), commands);
      },
    );
    await expect(fc.assert(property, runsOfLimits.parameters as never)).resolves.toBeUndefined();
  },
  runsOfLimits.timeout,
);

const runsOfMore = runsOf('more', 0.1);

it(
  'behaves and answers like the memory engine with schedules, edits and cancelled jobs that are kept',
  async () => {
    const property = fc.asyncProperty(sequencesOfMore(COMMANDS, runsOfMore.replayPath), async (commands) => {
      runsOfMore.tick();
      await fc.asyncModelRun(async () => ({ model: await Scene.open(rig), real: rig }), commands);
    });
    await expect(fc.assert(property, runsOfMore.parameters as never)).resolves.toBeUndefined();
  },
  runsOfMore.timeout,
);

/** Mistakes that break no rule: only the comparison can find them. */
const PLANTED: Record<string, Patch> = {
  'takes jobs to the wrong end of the line': instead('enqueue-plain', ["'RPUSH'", "'LPUSH'"]),
  'writes an event of another number': instead('enqueue-plain', ["'events', count)", "'events', count + 1)"]),
  'lets a lease last longer': instead('exchange', ['lease_until(now + ', 'lease_until(1 + now + ']),
  'lets another job go first at release': instead('release', [/'LPUSH'/, "'RPUSH'"]),
};
const PLANTED_IN_LIMITS: Record<string, Patch> = {
  'puts jobs that were given back behind their group': instead('exchange', [
    /'HSETNX', (\S+), id, '0'/,
    "'HEXISTS', $1, id",
  ]),
  'puts jobs of a stopped worker behind their group': instead('release', [
    /'HSETNX', (\S+), id, '0'/,
    "'HEXISTS', $1, id",
  ]),
  'turns the order of jobs that were given back': instead('claim-limited', [
    /for i = #ids, 1, -1 do(\s+if stalls\[i\])/,
    'for i = 1, #ids do$1',
  ]),
  'serves a group first that got jobs back': (name, text) => {
    const ready = /'ZADD', (\S+), 'NX', unpack\(freed\)/.exec(text)?.[1];
    const first = `redis.call('ZADD', ${ready}, '1', line_text(math.floor(scores[i] / ${RULES.ranks})))`;
    return instead('claim-limited', ["if stalls[i] == '0' then", `if stalls[i] == '0' then ${first}`])(
      name,
      text,
    );
  },
  'keeps the slot of a job that was given back': instead('exchange', [
    "free_slots(released, traces, 'moved')",
    '',
  ]),
  'passes no key on to a job of a group': instead('free-keys', [
    'if has_next and (',
    `if has_next and not string.find(body_of(row.next), '"group"', 1, true) and (`,
  ]),
  'puts jobs of a lost worker behind their group': instead('claim-limited', [
    'if stalls[i] or first[ids[i]] then',
    'if false then',
  ]),
};

const PLANTED_IN_MORE: Record<string, Patch> = {
  'forgets who changed the options of a job meanwhile': instead('update', [
    /options ~= ARGV\[\d+\]/,
    'false',
  ]),
};

it.each([
  // Some need several hundred sequences.
  ...Object.entries(PLANTED).map(([what, patch]) => ({
    what,
    patch,
    drawn: sequences(COMMANDS),
    most: 1_000,
  })),
  ...Object.entries(PLANTED_IN_LIMITS).map(([what, patch]) => ({
    what,
    patch,
    drawn: sequencesOfLimits(COMMANDS_OF_LIMITS),
    most: 200,
  })),
  ...Object.entries(PLANTED_IN_MORE).map(([what, patch]) => ({
    what,
    patch,
    drawn: sequencesOfMore(COMMANDS),
    most: 200,
  })),
])('detects an engine that $what', { timeout: 300_000 }, async ({ patch, drawn, most }) => {
  const worse = await Rig.open(server.url, { patch });
  try {
    const property = fc.asyncProperty(drawn, (commands) =>
      fc.asyncModelRun(async () => ({ model: await Scene.open(worse), real: worse }), commands),
    );
    expect(await fc.check(property, { numRuns: most, seed: 11, endOnFailure: true })).toMatchObject({
      failed: true,
    });
  } finally {
    await worse.close();
  }
});
