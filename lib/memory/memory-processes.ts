import type { ProcessList, ProcessRecord, ProcessVerbs } from '../contract/process-verbs.js';
import type { Verbs } from './verbs.js';

/** Who works on a store in memory: whoever has it, so mostly one process. */
export class MemoryProcesses implements ProcessVerbs {
  readonly server = 'memory';

  constructor(private readonly verbs: Verbs) {}

  register(record: ProcessRecord, leaseMs: number): Promise<void> {
    const { store } = this.verbs;
    return this.verbs.run('register', () => store.processes.register(record, leaseMs, store.clock.now()));
  }

  unregister(process: string): Promise<void> {
    return this.verbs.run('unregister', () => this.verbs.store.processes.unregister(process));
  }

  list(): Promise<ProcessList> {
    const { store } = this.verbs;
    return this.verbs.run('list', () => ({
      records: store.processes.living(store.clock.now()),
      unreadable: [],
    }));
  }

  ofWorker(worker: string): Promise<ProcessRecord | null> {
    return this.verbs.run('ofWorker', () => this.verbs.store.processes.ofWorker(worker));
  }
}

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
