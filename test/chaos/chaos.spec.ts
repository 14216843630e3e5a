import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from '../support/sources.js';
import { FAULTS, type FaultKind } from './faults.js';
import type { Broken } from './plan.js';
import type { Result } from './run.js';

/*
 * A short run of `npm run chaos`, once with every kind of fault, and once for each engine that breaks its promise: those must
 * be found out, or the first would prove nothing.
 */
const RUN_MS = 300_000;
/** Broken engines, about 15 seconds each. */
const MOST_RUNS = 6;
const execute = promisify(execFile);

let dir: string;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'godwit-chaos-spec-'));
  await execute('npx', ['tsc', '-p', 'test/chaos/tsconfig.json'], { cwd: ROOT });
}, 120_000);

afterAll(() => rmSync(dir, { recursive: true, force: true }));

interface Run extends Result {
  readonly code: number;
}

async function chaos(name: string, ...args: readonly string[]): Promise<Run> {
  const out = join(dir, `${name}.json`);
  const main = join(ROOT, '.tmp/chaos/main.js');
  const { code, output } = await execute(process.execPath, [main, '--out', out, ...args], {
    cwd: ROOT,
    timeout: RUN_MS,
    killSignal: 'SIGINT',
  }).then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      code: error.code,
      output: error.stdout + error.stderr,
    }),
  );
  // The seed is in its first line, its figures are in the last: whatever a test says of the run, it can be repeated.
  console.log(output);
  const result = JSON.parse(readFileSync(out, 'utf8')) as Result;
  if (result.ledgers !== null) rmSync(result.ledgers, { recursive: true, force: true });
  return { ...result, code };
}

describe('a quarter of a minute of everything that can break', () => {
  let run: Run;

  beforeAll(async () => {
    run = await chaos('all', ...'--jobs 15000 --seconds 15'.split(' '));
  }, RUN_MS + 10_000);

  it('breaks what it is meant to break', () => {
    expect(run.acts).toEqual(run.options.faults);
    const left = (Object.keys(FAULTS) as FaultKind[]).filter((kind) => run.acts[kind] === 0);
    expect(left).toEqual(process.platform === 'linux' ? ['aof-cut'] : ['aof-cut', 'full-disk']);
    expect(run.account.recoveries.dead).toBeGreaterThan(0);
    expect(run.account.added).toBeGreaterThanOrEqual(run.options.jobs);
  });

  it('loses no job', () => {
    expect(run.account).toMatchObject({ lost: 0, left: 0 });
  });

  it('runs no job that was never added, and none whose add was reported as not applied', () => {
    expect(run.account).toMatchObject({ phantom: 0, foreignEvents: 0 });
  });

  it('settles no job twice', () => {
    expect(run.account).toMatchObject({ doubleSettled: 0, unwitnessed: 0 });
  });

  it('applies each call as a whole or not at all, and takes none for a duplicate', () => {
    expect(run.account).toMatchObject({ torn: 0, falseDuplicates: 0 });
  });

  it('runs no job again without a fault that explains it', () => {
    expect(run.account.reruns).toBeLessThanOrEqual(run.account.rerunBound);
  });

  it('takes no job from a worker that is well', () => {
    expect(run.account.falseRecoveries).toBe(0);
  });

  it('ends each job as it should: what kills its worker as stalled, and nothing else', () => {
    expect(run.account).toMatchObject({ wrongEnds: 0, dead: { stalled: expect.any(Number) } });
  });

  it('has counters, places and events that agree with the ledger, also after a restart of Redis', () => {
    expect(run.account).toMatchObject({ disagreements: [], missedEvents: 0 });
    expect(run.violations).toEqual([]);
  });

  it('has calls of every kind with the answers that one order of them explains', () => {
    expect(run.mixed).toMatchObject({ findings: [], excused: 0 });
    expect(run.mixed.runs).toBeGreaterThan(300);
  });

  it('leaves no rejection unhandled, and no process that exits on its own or does not exit when told to', () => {
    expect(run.account.unhandled).toBe(0);
    expect(run.accidents).toEqual([]);
    expect(run.code).toBe(0);
  });
});

describe('a Redis that forgets', () => {
  it(
    'loses only what it acknowledged after the last write it kept, and no job is in two places',
    async () => {
      const run = await chaos('aof-cut', ...'--jobs 0 --seconds 12 --lease 1000 --aof-cuts 3'.split(' '));
      expect(run.mixed.findings).toEqual([]);
      expect(run.mixed.excused).toBeGreaterThan(0);
      expect(run.mixed.excused).toBeLessThan(run.mixed.ids / 2);
      expect(run.violations).toEqual([]);
    },
    RUN_MS,
  );
});

describe('an engine that breaks its promise', () => {
  // Pauses and kills that meet running jobs; a short lease makes them matter soon.
  const short = '--jobs 6000 --seconds 8 --lease 1000 --worker-stops 4 --worker-kills 3'.split(' ');

  /** Whether a fault meets the mistake is up to chance, four times in five it does: the first run in which it shows, or the last. */
  async function untilItShows(broken: Broken, shows: (run: Run) => boolean): Promise<Run> {
    for (let nth = 1; ; nth++) {
      const run = await chaos(`${broken}-${nth}`, ...short, '--broken', broken);
      if (shows(run) || nth === MOST_RUNS) return run;
    }
  }

  it(
    'is detected when it settles for a worker that has lost its lease',
    async () => {
      const run = await untilItShows('no-fencing', ({ account }) => account.doubleSettled > 0);
      expect(run.account.doubleSettled).toBeGreaterThan(0);
      expect(run.code).toBe(1);
    },
    RUN_MS,
  );

  it(
    'is detected when it forgets which jobs it has handed out',
    async () => {
      const run = await untilItShows('pop-and-forget', ({ account }) => account.lost > 0);
      expect(run.account.lost).toBeGreaterThan(0);
      expect(run.code).toBe(1);
    },
    RUN_MS,
  );
});
