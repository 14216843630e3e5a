import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { QueueEngine } from '../engine/engine.js';
import type { PoolRecord, ProcessRecord, ProcessState, RunningJob } from '../engine/process-verbs.js';
import { within } from '../engine/waiting.js';
import type { LeaseKeeper } from './lease-keeper.js';

/** Jobs that are named for each pool. */
const MAX_JOBS = 50;
/** How long the farewell may take; where it does not arrive, the record ends with its lease. */
const FAREWELL_MS = 1000;
/** The clock of the store is known to within a round trip; a time that was said is not said again for less. */
const CLOCK_ERROR_MS = 1000;

/** What the registry tells of a pool. */
export interface ShownPool extends Pick<PoolRecord, 'queues' | 'paused' | 'concurrency' | 'workers'> {
  /** Those that began first come first. */
  readonly runs: ReadonlySet<ShownRun>;
}

export interface ShownRun extends Pick<RunningJob, 'queue' | 'id' | 'name' | 'attempt'> {
  /** By `performance.now()`. */
  readonly startedAt: number;
}

/**
 * Tells operators who this process is and what it does: once a beat, where something has changed. The thread that beats says
 * it and renews it, so that a process does not vanish while a handler blocks its event loop.
 */
export class Registrar {
  private readonly id = randomBytes(9).toString('base64url');
  readonly startedAt = performance.now();
  private readonly pools: ShownPool[] = [];
  /** When a run, or this process, began on the clock of the store, as it was said. */
  private readonly times = new WeakMap<object, number>();
  private state: ProcessState = 'running';
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly engine: Pick<QueueEngine, 'now' | 'processes'>,
    private readonly leases: Pick<LeaseKeeper, 'show'>,
    private readonly role: 'producer' | 'worker' | 'both',
    private readonly leaseMs: number,
  ) {}

  add(pool: ShownPool): void {
    this.pools.push(pool);
  }

  /** At once, and from now on whenever something has changed. */
  say(state: ProcessState): void {
    this.state = state;
    this.timer ??= setInterval(() => this.show(), this.leaseMs / 4).unref();
    this.show();
  }

  /** Says nothing new any more. */
  stop(): void {
    clearInterval(this.timer);
  }

  /** The last word, once nobody renews what was said. Never rejects. */
  async leave(): Promise<void> {
    if (this.timer) await within(FAREWELL_MS, this.engine.processes.unregister(this.id));
  }

  private show(): void {
    const { id, state } = this;
    this.leases.show({
      id,
      host: hostname(),
      pid: process.pid,
      versions: { godwit: VERSION, node: process.versions.node, server: this.engine.processes.server },
      startedAt: this.timeOf(this),
      role: this.role === 'worker' ? 'worker' : 'both',
      state,
      pools: this.pools.map((pool) => this.recordOf(pool)),
      morePools: 0,
    } satisfies ProcessRecord);
  }

  private recordOf({ queues, paused, concurrency, workers, runs }: ShownPool): PoolRecord {
    const jobs: RunningJob[] = [];
    for (const run of runs) {
      if (jobs.length === MAX_JOBS) break;
      const { queue, id, name, attempt } = run;
      jobs.push({ queue, id, name, attempt, since: this.timeOf(run) });
    }
    return { queues, paused, concurrency, workers, running: runs.size, jobs };
  }

  private timeOf(one: { readonly startedAt: number }): number {
    const time = Math.round(this.engine.now() - (performance.now() - one.startedAt));
    const said = this.times.get(one);
    if (said !== undefined && Math.abs(time - said) < CLOCK_ERROR_MS) return said;
    this.times.set(one, time);
    return time;
  }
}

const VERSION = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version;
