import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { account, type Account } from './ledger/account.js';
import { History } from './ledger/history.js';
import type { QueueScan } from './redis/scan.js';
import { temporaryFolder } from '../support/cleanup.js';

const LEASE = 4_000;

/** The account of a run whose processes wrote these lines. */
function accountOf(files: Record<string, readonly string[]>, scan: Partial<QueueScan> = {}): Account {
  const dir = temporaryFolder();
  for (const [file, lines] of Object.entries(files)) {
    writeFileSync(join(dir, file), lines.map((line) => `${line}\n`).join(''));
  }
  const history = new History({ dir, seed: 1, leaseMs: LEASE, stride: 1 });
  const { counts, deaths } = history;
  const dead = [...deaths.values()].reduce((sum, count) => sum + count, 0);
  const nothing = { runnable: [], nonces: new Map(), keys: [], faults: [] };
  return account(history, {
    ...nothing,
    dead,
    processed: counts.completed,
    deadCounter: dead,
    ...scan,
  });
}

/** A producer's lines for jobs that do nothing and were accepted. */
const added = (...nonces: number[]) => nonces.flatMap((n) => [`I ${n} 1 q`, `A ${n} 1`]);
const ran = (n: number, run: number, at = 100) => [`S ${n} ${run} ${at}`, `E ${n} ${run}`];
const completed = (n: number, run: number, at = 100) => [...ran(n, run, at), `C ${n} ${run}`];
const well = (n: number) => ({ 'worker-0.1': completed(n, 1), 'watcher-0.2': [`c j${n}`] });

describe('the account of a run', () => {
  it('finds nothing in an empty history', () => {
    expect(accountOf({ 'producer-0.0': added(0), ...well(0) })).toMatchObject({
      intended: 1,
      added: 1,
      completed: 1,
      dead: {},
      left: 0,
      lost: 0,
      phantom: 0,
      doubleSettled: 0,
      unwitnessed: 0,
      torn: 0,
      falseDuplicates: 0,
      wrongEnds: 0,
      reruns: 0,
      falseRecoveries: 0,
      unhandled: 0,
      missedEvents: 0,
      disagreements: [],
    });
  });

  it.each([
    ['never ran', []],
    ['was begun and left', ['S 1 2 100']],
    ['ran to its end, which nobody heard of', ran(1, 2)],
  ])('calls a job lost that %s', (_, lines) => {
    const files = { 'producer-0.0': added(0, 1), ...well(0), 'worker-1.3': lines };
    expect(accountOf(files)).toMatchObject({ added: 2, lost: 1 });
  });

  it('calls a job lost that ran although its add was never answered', () => {
    expect(accountOf({ 'producer-0.0': ['I 0 1 q'], 'worker-0.1': ran(0, 1) })).toMatchObject({ lost: 1 });
  });

  it('does not call a job lost that is still in the queue, or dead', () => {
    const files = {
      'producer-0.0': [...added(0), 'I 1 1 d', 'A 1 1'],
      'watcher-0.2': ['f j1 unrecoverable'],
    };
    const nonces = new Map([['j0', 0]]);
    expect(accountOf(files, { runnable: ['j0'], nonces })).toMatchObject({
      lost: 0,
      left: 1,
      dead: { unrecoverable: 1 },
    });
  });

  it.each([
    ['was never added', ['I 1 1 q']],
    ['was said to be not applied', ['I 0 1 q', 'R 0 1']],
  ])('calls a job a phantom that ran and %s', (_, lines) => {
    expect(accountOf({ 'producer-0.0': lines, ...well(0) })).toMatchObject({ phantom: 1 });
  });

  it.each([
    [
      'two workers',
      { 'worker-0.1': completed(0, 1), 'worker-1.2': completed(0, 1), 'watcher-0.3': ['c j0'] },
    ],
    ['the store', { 'worker-0.1': completed(0, 1), 'watcher-0.3': ['c j0', 'c j0'] }],
    ['both kinds of end', { 'worker-0.1': completed(0, 1), 'watcher-0.3': ['c j0', 'f j0 stalled'] }],
    [
      'two jobs for one add',
      { 'worker-0.1': [`S 0 1 100 made`, 'E 0 1', 'C 0 1'], 'watcher-0.3': ['c j0', 'c made'] },
    ],
  ])('calls a job settled twice by %s', (_, files) => {
    expect(accountOf({ 'producer-0.0': added(0), ...files })).toMatchObject({ doubleSettled: 1 });
  });

  it('sees an accepted end that the store does not know of', () => {
    const files = { 'producer-0.0': added(0), 'worker-0.1': completed(0, 1) };
    expect(accountOf(files)).toMatchObject({ unwitnessed: 1 });
  });

  it('sees an end that was reported to no worker', () => {
    const files = { 'producer-0.0': added(0), 'worker-0.1': ran(0, 1), 'watcher-0.2': ['c j0'] };
    expect(accountOf(files)).toMatchObject({ unheardEnds: 1, rerunBound: 1, lost: 0 });
  });

  it('divides calls without an answer into applied and not applied, and sees a call applied in part', () => {
    const files = (runs: readonly number[]) => ({
      'producer-0.0': ['I 0 3'],
      'worker-0.1': runs.flatMap((n) => completed(n, n)),
      'watcher-0.2': runs.map((n) => `c j${n}`),
    });
    expect(accountOf(files([]))).toMatchObject({ unknownApplied: 0, unknownNotApplied: 3, torn: 0 });
    expect(accountOf(files([0, 1, 2]))).toMatchObject({ unknownApplied: 3, unknownNotApplied: 0, torn: 0 });
    expect(accountOf(files([0, 2]))).toMatchObject({ unknownApplied: 2, unknownNotApplied: 1, torn: 1 });
  });

  it('counts runs beyond the first end, and what faults explain of them', () => {
    const files = {
      'producer-0.0': added(0, 1),
      'worker-0.1': [...ran(0, 1), ...ran(1, 2), 'X 1 2'],
      'worker-1.2': [...completed(0, 1, 5_000), ...completed(1, 2, 5_000)],
      'watcher-0.3': ['c j0', 'c j1'],
    };
    expect(accountOf(files)).toMatchObject({ reruns: 2, rerunBound: 2, staleRefused: 1 });
  });

  it('sees jobs that ended otherwise than they should', () => {
    const files = {
      'producer-0.0': ['I 0 1 d', 'A 0 1', ...added(1)],
      'worker-0.1': [...completed(0, 1), 'S 1 2 100'],
      'watcher-0.2': ['c j0', 'f j1 stalled'],
    };
    expect(accountOf(files)).toMatchObject({ wrongEnds: 2, unlucky: 0 });
  });

  it('takes a harmless job that lost six workers for dead as it should be', () => {
    const stalls = (count: number) => ({
      'producer-0.0': added(0),
      'watcher-0.1': [...Array.from({ length: count }, () => 's j0'), 'f j0 stalled'],
    });
    expect(accountOf(stalls(6))).toMatchObject({ wrongEnds: 0, unlucky: 1, lost: 0 });
    expect(accountOf(stalls(5))).toMatchObject({ wrongEnds: 1, unlucky: 0 });
  });

  it('sees a duplicate of a job that does not exist, missed events, and uncaught errors', () => {
    const files = {
      'producer-0.0': [...added(0), 'Q 0'],
      'worker-0.1': [...completed(0, 1), 'U Error: oh'],
      'watcher-0.2': ['c j0', 'g 3', 'c of-nobody'],
    };
    expect(accountOf(files)).toMatchObject({
      falseDuplicates: 1,
      missedEvents: 3,
      foreignEvents: 1,
      unhandled: 1,
    });
  });

  it('takes the last line of a killed process for what it is', () => {
    const files = { 'producer-0.0': added(0), ...well(0) };
    const torn = { ...files, 'worker-1.3': ['S 0 9 100', 'E 0 9'] };
    expect(accountOf(torn).reruns).toBe(1);
    const dir = temporaryFolder();
    writeFileSync(join(dir, 'worker-1.3'), 'S 0 9 100\nE 0');
    expect(new History({ dir, seed: 1, leaseMs: LEASE, stride: 1 }).counts).toMatchObject({
      started: 1,
      ended: 0,
    });
  });

  it('compares counters and places of the store with what happened', () => {
    const { disagreements } = accountOf(
      { 'producer-0.0': added(0), ...well(0) },
      { processed: 2, dead: 1, faults: ['x is in no place'] },
    );
    expect(disagreements).toEqual([
      'x is in no place',
      'completed by the counters 2, by the events 1',
      'dead in the store 1, by the events 0',
    ]);
  });
});

describe('the account of recoveries', () => {
  const recovered = (nemesis: readonly string[], at = 10_000) =>
    accountOf({
      'producer-0.0': added(0),
      'worker-0.1': ['W me.1 50', 'S 0 1 100'],
      'worker-1.2': ['W other.1 60', `V me.1 1 ${at}`, ...completed(0, 1, at + 20)],
      'watcher-0.3': ['s j0', 'c j0'],
      'nemesis-0.0': nemesis,
    });

  it.each([
    ['dead', ['D worker-0.1 5000 kill'], { dead: 1, paused: 0, cutOff: 0 }],
    ['paused', ['K worker-stop 4000 11000 worker-0.1'], { dead: 0, paused: 1, cutOff: 0 }],
    ['cut off', ['K half-open 4000 9000 worker-0.1'], { dead: 0, paused: 0, cutOff: 1 }],
  ])('reports that the worker was %s', (_, nemesis, sums) => {
    expect(recovered(nemesis)).toMatchObject({ recoveries: sums, falseRecoveries: 0, stalled: 1 });
  });

  it.each([
    ['nothing happened', []],
    ['another worker was paused', ['K worker-stop 4000 11000 worker-1.2']],
    ['it was paused long before', ['K worker-stop 1000 2000 worker-0.1']],
    ['Redis was stalled, which is no sign of death', ['K redis-stall 4000 9000 redis']],
    ['it died only afterwards', ['D worker-0.1 12000 kill']],
  ])('calls it false if %s', (_, nemesis) => {
    expect(recovered(nemesis)).toMatchObject({ falseRecoveries: 1 });
  });

  it('measures from the kill to the next run of the last job', () => {
    expect(recovered(['D worker-0.1 5000 kill'], 9_500)).toMatchObject({ longestRecovery: 4_520 });
  });

  it.each([
    ['Redis was away', ['K redis-kill 4000 6000 redis', 'K redis-stall 5500 7000 redis']],
    ['no other worker was up', ['K worker-stop 4000 7000 worker-1.2']],
  ])('leaves out the time in which %s', (_, nemesis) => {
    const { longestRecovery } = recovered(['D worker-0.1 5000 kill', ...nemesis], 9_500);
    expect(longestRecovery).toBe(2_520);
  });
});
