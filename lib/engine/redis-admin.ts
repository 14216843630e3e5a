import type { AuditReport, RepairReport } from '../job/audit-report.js';
import { decodeBody, expiresAt } from '../job/job-record.js';
import type { JobCounts } from '../job/job-state.js';
import type { AdminVerbs, CancelAnswer, StoredJob } from '../contract/admin-verbs.js';
import { Auditor } from './auditor.js';
import type { EngineSettings } from './wire/clients.js';
import type { RecoverAnswer, RecoverCall } from '../contract/engine.js';
import { readStats, type QueueStats } from '../contract/stats.js';
import { stamped } from './codec/replies.js';
import type { RedisStore } from './redis-store.js';
import { cancel } from './scripts/cancel.js';
import { counts } from './scripts/counts.js';
import { get } from './scripts/get.js';
import { oldest } from './scripts/oldest.js';
import { obliterate } from './scripts/obliterate.js';
import { pause } from './scripts/pause.js';
import { promoteNow } from './scripts/promote-now.js';
import { remove } from './scripts/remove.js';
import { stats } from './scripts/stats.js';

/** How far into a line one looks for a job that has not failed before. */
const LOOK = 100;

/** The acts of people on Redis: one script each, but for the walks through a large queue. */
export class RedisAdmin implements AdminVerbs {
  constructor(
    private readonly store: RedisStore,
    private readonly settings: EngineSettings,
    private readonly recover: (queue: string, call: RecoverCall) => Promise<RecoverAnswer>,
  ) {}

  async get(queue: string, id: string): Promise<StoredJob | null> {
    const found = await this.store.withWorkers(queue, (workers, keys) =>
      this.store.run(
        get,
        { ...keys.fixed, bodies: keys.bodies(id) },
        { id, workers: workers.join('\n') },
        {},
        workers.map((worker) => keys.active(worker)),
      ),
    );
    return found && { id, ...found };
  }

  counts(queue: string): Promise<JobCounts & { paused: boolean }> {
    return this.store.withWorkers(queue, (workers, keys) =>
      this.store.run(
        counts,
        keys.fixed,
        { workers: workers.join('\n') },
        {},
        workers.map((worker) => keys.active(worker)),
      ),
    );
  }

  async oldestWaitingMs(queue: string): Promise<number | null> {
    const { now, heads } = await this.store.run(oldest, this.store.keysOf(queue).fixed, { look: LOOK });
    let oldestMs: number | null = null;
    for (const head of heads) {
      const body = decodeBody(`${head}null`);
      if (body) oldestMs = Math.max(oldestMs ?? 0, now - expiresAt(body, 0)!);
    }
    return oldestMs;
  }

  remove(queue: string, id: string): Promise<'removed' | 'not-found' | 'active'> {
    const { maxEvents } = this.settings.limitsOf(queue);
    return this.store.withWorkers(queue, (workers, keys) =>
      this.store.run(
        remove,
        keys.fixed,
        { id, workers: workers.join('\n'), maxEvents },
        {},
        workers.map((worker) => keys.active(worker)),
      ),
    );
  }

  cancel(queue: string, id: string, reason: string): Promise<CancelAnswer> {
    const { maxEvents } = this.settings.limitsOf(queue);
    return this.store.withWorkers(queue, (workers, keys) =>
      this.store.run(
        cancel,
        { ...keys.fixed, stats: keys.stats(this.store.today()) },
        { id, reason, workers: workers.join('\n'), maxEvents },
        {},
        workers.map((worker) => keys.active(worker)),
      ),
    );
  }

  async cancelled(queue: string, id: string): Promise<{ reason: string; agoMs: number } | null> {
    const { cancelled } = this.store.keysOf(queue).fixed;
    const [at, reason] = stamped((await this.store.command('cancelled', 'hget', [cancelled, id])) ?? '');
    return at === null || reason === null ? null : { reason, agoMs: this.store.now() - at };
  }

  /** A day at a time: all of them in one script would hold Redis for long where a queue has many names. */
  async stats(queue: string, days: number): Promise<QueueStats> {
    const keys = this.store.keysOf(queue).statsUntil(this.store.now(), days);
    const read = keys.map(async ({ date, key }) => {
      return { date, counters: await this.store.run(stats, { stats: key }, {}) };
    });
    return readStats(await Promise.all(read));
  }

  promoteNow(queue: string, id: string): Promise<'promoted' | 'not-found' | 'not-delayed'> {
    const keys = this.store.keysOf(queue);
    return this.store.run(promoteNow, { ...keys.fixed, bodies: keys.bodies(id) }, { id });
  }

  pause(queue: string): Promise<boolean> {
    return this.setPaused(queue, 1);
  }

  resume(queue: string): Promise<boolean> {
    return this.setPaused(queue, 0);
  }

  private setPaused(queue: string, paused: 0 | 1): Promise<boolean> {
    const { maxEvents } = this.settings.limitsOf(queue);
    return this.store.run(pause, this.store.keysOf(queue).fixed, { pause: paused, maxEvents });
  }

  obliterate(queue: string, force: boolean): Promise<'obliterated' | 'active'> {
    return this.store.withWorkers(queue, (workers, keys) =>
      this.store.run(obliterate, keys.fixed, { force: force ? 1 : 0, workers: workers.join('\n') }, {}, [
        ...workers.flatMap((worker) => [keys.active(worker), keys.worker(worker)]),
        ...keys.everyStats(this.store.now()),
      ]),
    );
  }

  audit(queue: string): Promise<AuditReport> {
    return this.auditor(0).audit(queue);
  }

  repair(queue: string, maxStalls: number): Promise<RepairReport> {
    return this.auditor(maxStalls).repair(queue);
  }

  private auditor(maxStalls: number): Auditor {
    const { leaseMs, limitsOf } = this.settings;
    return new Auditor(this.store, {
      leaseMs,
      limitsOf,
      recover: (queue, worker) => this.recover(queue, { worker, beatMs: leaseMs / 4, leaseMs, maxStalls }),
    });
  }
}
