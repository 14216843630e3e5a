import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { check, type Verdict } from '../history/check.js';
import { monotonicMs, readHistory, Recorder } from '../history/recorder.js';
import { account, MUST_BE_ZERO, type Account } from './ledger/account.js';
import { History } from './ledger/history.js';
import { readLedger } from './ledger/reader.js';
import { LedgerWriter } from './ledger/writer.js';
import { Fleet, type Role } from './fleet.js';
import { MIXED } from './mix/queues.js';
import { Gauge, type Sample } from './gauge.js';
import { Nemesis } from './nemesis.js';
import type { Options } from './options.js';
import type { ChildPlan } from './plan.js';
import { scanQueue, type QueueScan } from './redis/scan.js';
import { Store } from './redis/store.js';
import { Table } from './report.js';
import { makeSchedule, type Act } from './schedule.js';

export interface Result {
  readonly options: Options;
  readonly startedAt: string;
  readonly seconds: number;
  readonly account: Account;
  /** The verdict on the calls of every kind; their history is beside the result. */
  readonly mixed: Verdict;
  /** The planned faults, with their times. */
  readonly schedule: readonly Act[];
  /** The faults that happened, with their numbers. */
  readonly acts: Readonly<Record<string, number>>;
  readonly accidents: readonly string[];
  readonly keysLeft: readonly string[];
  readonly slopes: Slopes;
  readonly samples: readonly Sample[];
  /** Every broken promise, as a sentence; empty if all is well. */
  readonly violations: readonly string[];
  /** The folder of the ledgers, if they were kept. */
  readonly ledgers: string | null;
}

/** How long nothing may change after all faults have ended, until the remaining jobs count as stuck. */
const STUCK_MS = 60_000;
/**
 * The trims after the last job: an empty queue has these keys and no others. Keys with a time to live disappear by
 * themselves: the claim of the process that looks after the queues, and the doorbell of a killed process.
 */
const KEPT =
  /:(jobs(:[A-Z])?|dead|failures|attempts|stalls|events|meta|doorbell|stats:[\d-]+|worker:.+|lane:.+|processes(:info)?|queues|janitor:[\da-f]+|bell:[\da-f]+)$/;

/** One run, from start to verdict. */
export async function run(options: Options, interrupt: AbortSignal): Promise<Result> {
  const dir = mkdtempSync(join(tmpdir(), 'godwit-chaos-'));
  const startedAt = new Date();
  const store = await Store.start(mkdtempSync(join(dir, 'redis-')), options.fsync);
  const chaos = new Chaos(options, dir, store, startedAt.getTime());
  try {
    const parts = await chaos.run(interrupt);
    const violations = [...parts.violations, ...chaos.accidents];
    const keep = options.keep || violations.length > 0;
    const result: Result = {
      options,
      startedAt: startedAt.toISOString(),
      seconds: Math.round((Date.now() - startedAt.getTime()) / 1000),
      ...parts,
      accidents: chaos.accidents,
      violations,
      ledgers: keep ? dir : null,
    };
    mkdirSync(dirname(options.out), { recursive: true });
    writeFileSync(options.out, `${JSON.stringify(result, undefined, 2)}\n`);
    await chaos.close();
    if (!keep) rmSync(dir, { recursive: true, force: true });
    return result;
  } finally {
    await chaos.close();
  }
}

class Chaos {
  private readonly nemesisLedger: LedgerWriter;
  private readonly fleet: Fleet;
  private readonly gauge: Gauge;
  private ports: readonly number[] = [];
  private closed = false;
  private readonly mixedDir: string;
  private readonly mixedEpoch = monotonicMs();

  constructor(
    private readonly options: Options,
    private readonly dir: string,
    private readonly store: Store,
    private readonly epoch: number,
  ) {
    this.mixedDir = mkdtempSync(join(dir, 'mixed-'));
    this.nemesisLedger = new LedgerWriter(join(dir, 'nemesis-0.0'), epoch);
    this.fleet = new Fleet({
      dir,
      nemesis: this.nemesisLedger,
      planFor: (role, slot) => this.planFor(role, slot),
    });
    this.gauge = new Gauge(store, this.fleet, options);
  }

  get accidents(): readonly string[] {
    return this.fleet.accidents;
  }

  async run(interrupt: AbortSignal) {
    const { options, fleet, store } = this;
    const schedule = makeSchedule(options);
    // Written now already, to investigate a run that never finishes.
    writeFileSync(join(this.dir, 'schedule.json'), JSON.stringify(schedule, undefined, 1));
    await this.startAll();
    const world = { store, fleet, options };
    const recorder = Recorder.toFile('nemesis', join(this.mixedDir, 'nemesis'), this.mixedEpoch);
    const nemesis = new Nemesis(schedule, world, this.nemesisLedger, recorder, () => this.progress());
    const table = new Table(this.gauge, nemesis);
    try {
      await this.loaded(interrupt, nemesis);
      await nemesis.end();
      await this.settled(interrupt);
    } finally {
      await nemesis.end();
      table.end();
    }
    await this.watcherHasSeenAll();
    await this.mixedIsLookedAt();
    // The first scan is of the running system; the others are after its end, and after a restart of the server.
    const running = await scanQueue(store.control);
    await this.audit('while all runs');
    await fleet.stop('worker');
    await fleet.stop('producer');
    const stopped = await scanQueue(store.control);
    await store.restart();
    const reloaded = await scanQueue(store.control);
    await this.audit('after a restart of Redis');
    await fleet.stop('watcher');
    const history = new History({
      dir: this.dir,
      seed: options.seed,
      leaseMs: options.leaseMs,
      stride: options.producers,
    });
    const sums = account(history, running);
    const mixed = this.checkMixed();
    return {
      account: sums,
      schedule,
      acts: nemesis.done,
      keysLeft: reloaded.keys,
      slopes: slopesOf(this.gauge.samples),
      samples: this.gauge.samples,
      mixed,
      violations: [
        ...violationsOf(sums, running, stopped, reloaded),
        ...mixed.findings.map(({ promise, queue, id, text }) => `${promise}: ${queue} ${id}: ${text}`),
      ],
    };
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.gauge.stop();
    await this.fleet.killAll();
    await this.store.stop();
  }

  private async startAll(): Promise<void> {
    const { workers, producers } = this.options;
    const proxy = this.fleet.start('proxy', 0);
    this.ports = (await proxy.ready).ports!;
    await this.fleet.start('watcher', 0).ready;
    for (let slot = 0; slot < workers; slot++) this.fleet.start('worker', slot);
    await Promise.all(this.fleet.all('worker').map((child) => child.ready));
    for (let slot = 0; slot < producers; slot++) this.fleet.start('producer', slot);
    await Promise.all(this.fleet.all('producer').map((child) => child.ready));
    this.gauge.start();
  }

  /** The plan of the next process in this place. */
  private planFor(role: Role, slot: number): Omit<ChildPlan, 'ledger'> {
    const { seed, leaseMs, concurrency, broken, workers, producers, jobs, seconds } = this.options;
    const mixed = {
      dir: this.mixedDir,
      file: `${role}-${slot}.${this.fleet.children.length}`,
      epoch: this.mixedEpoch,
      ms: Math.max(0, seconds - this.gauge.elapsed) * 1000,
    };
    const common = { url: this.store.url, epoch: this.epoch, seed, leaseMs, concurrency, mixed };
    const through = (line: number) => ({ ...common, url: `redis://127.0.0.1:${this.ports[line]}` });
    if (role === 'watcher') return common;
    if (role === 'proxy') return { ...common, proxy: { lines: workers + producers } };
    if (role === 'worker') return { ...through(slot), ...(broken && { broken }) };
    const { accepted, next } = this.producedBy(slot);
    return {
      ...through(workers + slot),
      produce: {
        first: next ?? slot,
        stride: producers,
        jobs: Math.max(0, Math.ceil(jobs / producers) - accepted),
        rate: seconds === 0 ? 0 : jobs / producers / seconds,
        generatedIds: slot % 2 === 1,
      },
    };
  }

  /** The jobs that earlier producers in this place added, from their ledgers. */
  private producedBy(slot: number): { accepted: number; next: number | undefined } {
    let accepted = 0;
    let next: number | undefined;
    for (const file of readdirSync(this.dir)) {
      if (!file.startsWith(`producer-${slot}.`) || file.endsWith('.txt')) continue;
      readLedger(join(this.dir, file), ([letter, first, count]) => {
        if (letter === 'A') accepted += Number(count);
        if (letter === 'I')
          next = Math.max(next ?? 0, Number(first) + Number(count) * this.options.producers);
      });
    }
    return { accepted, next };
  }

  /** 0 to 1: by time if the load is spread over time, else by the completed jobs. */
  private progress(): number {
    const { seconds, jobs } = this.options;
    if (seconds > 0) return this.gauge.elapsed / seconds;
    return this.fleet.sum('watcher', 'completed') / jobs;
  }

  /** Waits until all jobs are added and the last fault has begun, or nothing changes any more. */
  private async loaded(interrupt: AbortSignal, nemesis: Nemesis): Promise<void> {
    const isLoaded = () => this.fleet.all('producer').every((child) => child.done);
    while (!isLoaded() || (nemesis.left > 0 && this.progress() < 1)) {
      interrupt.throwIfAborted();
      if (this.gauge.idleMs > STUCK_MS) return;
      await pause(100);
    }
  }

  /** Waits until the queue is empty, or nothing has changed for long. */
  private async settled(interrupt: AbortSignal): Promise<void> {
    while (!this.gauge.isEmpty && this.gauge.idleMs < STUCK_MS) {
      interrupt.throwIfAborted();
      await pause(100);
    }
  }

  private async watcherHasSeenAll(): Promise<void> {
    const watcher = this.fleet.at('watcher');
    watcher.tell({ do: 'finish' });
    if (await within(30_000, () => watcher.done)) return;
    this.fleet.accidents.push('the watcher did not hear the last event within 30 s');
  }

  private async mixedIsLookedAt(): Promise<void> {
    const watcher = this.fleet.at('watcher');
    watcher.tell({ do: 'look' });
    if (await within(2 * STUCK_MS, () => watcher.looked)) return;
    this.fleet.accidents.push('the mixed queues could not be looked at');
  }

  /** Writes the history of all processes beside the result, one call per line. */
  private checkMixed(): Verdict {
    const calls = readHistory(readdirSync(this.mixedDir).map((file) => join(this.mixedDir, file)));
    const file = this.options.out.replace(/(\.json)?$/, '.history.jsonl');
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, calls.map((call) => `${JSON.stringify(call)}\n`).join(''));
    return check(calls);
  }

  /** The library's own audit of the queue. */
  private async audit(when: string): Promise<void> {
    const watcher = this.fleet.at('watcher');
    const { length } = watcher.audits;
    watcher.tell({ do: 'audit' });
    await within(30_000, () => watcher.audits.length > length);
    const report = watcher.audits[length];
    if (!report) this.fleet.accidents.push(`the audit ${when} did not end within 30 s`);
    else this.fleet.accidents.push(...report.violations.map((text) => `audit ${when}: ${text}`));
  }
}

/** Waits for something without a signal; returns whether it came in time. */
async function within(ms: number, isSo: () => boolean): Promise<boolean> {
  for (const end = performance.now() + ms; performance.now() < end && !isSo();) await pause(50);
  return isSo();
}

function violationsOf(sums: Account, running: QueueScan, stopped: QueueScan, reloaded: QueueScan): string[] {
  const found: string[] = [];
  for (const figure of MUST_BE_ZERO) if (sums[figure] > 0) found.push(`${figure}: ${sums[figure]}`);
  for (const figure of ['reruns', 'unheardEnds'] as const) {
    if (sums[figure] > sums.rerunBound)
      found.push(`${figure}: ${sums[figure]}, of which faults explain ${sums.rerunBound}`);
  }
  found.push(...sums.disagreements);
  for (const [when, scan] of [
    ['once all had stopped', stopped],
    ['after a restart of Redis', reloaded],
  ] as const) {
    for (const figure of ['dead', 'processed', 'deadCounter'] as const) {
      if (scan[figure] !== running[figure])
        found.push(`${figure} ${when}: ${scan[figure]}, before ${running[figure]}`);
    }
    found.push(...scan.faults.map((fault) => `${when}: ${fault}`));
  }
  const own = stopped.keys.filter((key) => !MIXED.some((name) => key.includes(`:${name}}`)));
  for (const key of own) if (!KEPT.test(key)) found.push(`once all had stopped, ${key} was left`);
  return found;
}

const FIELDS = ['keys', 'redisBytes', 'workerRss'] as const;

/** Growth per minute, by least squares over the second half of the load. */
type Slopes = Readonly<Record<(typeof FIELDS)[number], number>>;

/** Shows what grows without end. The first half is left out, because caches still fill up. */
function slopesOf(samples: readonly Sample[]): Slopes {
  const half = samples.slice(Math.floor(samples.length / 2));
  return Object.fromEntries(FIELDS.map((field) => [field, Math.round(slope(half, field) * 60)])) as Record<
    (typeof FIELDS)[number],
    number
  >;
}

function slope(samples: readonly Sample[], field: (typeof FIELDS)[number]): number {
  // A moment without workers says nothing about their size.
  const points = samples.filter((sample) => sample[field] > 0);
  if (points.length < 2) return 0;
  const mean = (pick: (sample: Sample) => number) =>
    points.reduce((sum, sample) => sum + pick(sample), 0) / points.length;
  const [x, y] = [mean(({ at }) => at), mean((sample) => sample[field])];
  let up = 0;
  let along = 0;
  for (const sample of points) {
    up += (sample.at - x) * (sample[field] - y);
    along += (sample.at - x) ** 2;
  }
  return along === 0 ? 0 : up / along;
}
