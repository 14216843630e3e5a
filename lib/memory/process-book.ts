import type { ProcessRecord } from '../contract/process-verbs.js';

/** Who is gone is remembered for so long, for whoever asks whose jobs were lost. */
const REMEMBER_MS = 600_000;

/** What worker processes say of themselves, each for one lease. */
export class ProcessBook {
  private readonly entries = new Map<string, { readonly record: ProcessRecord; readonly endsAt: number }>();

  register(record: ProcessRecord, leaseMs: number, now: number): void {
    for (const [id, { endsAt }] of this.entries) if (endsAt <= now - REMEMBER_MS) this.entries.delete(id);
    // A copy, as of what is written elsewhere: who says it may change it.
    this.entries.set(record.id, { record: structuredClone(record), endsAt: now + leaseMs });
  }

  unregister(process: string): void {
    this.entries.delete(process);
  }

  living(now: number): ProcessRecord[] {
    const living = [...this.entries.values()].filter(({ endsAt }) => endsAt > now);
    return living.map(({ record }) => structuredClone(record));
  }

  /** The process of a worker, also when it is gone. */
  ofWorker(worker: string): ProcessRecord | null {
    for (const { record } of this.entries.values()) {
      if (record.pools.some(({ workers }) => workers.includes(worker))) return structuredClone(record);
    }
    return null;
  }
}
