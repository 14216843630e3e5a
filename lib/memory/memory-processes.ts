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
