import type { ProcessList, ProcessRecord, ProcessVerbs } from '../engine/process-verbs.js';
import type { Verbs } from './verbs.js';

export class MemoryProcesses implements ProcessVerbs {
  readonly server = null;

  constructor(private readonly verbs: Verbs) {}

  register(_record: ProcessRecord, _leaseMs: number): Promise<void> {
    return this.verbs.run('register', () => undefined);
  }

  unregister(_process: string): Promise<void> {
    return this.verbs.run('unregister', () => undefined);
  }

  list(): Promise<ProcessList> {
    return this.verbs.run('list', () => ({ records: [], unreadable: [] }));
  }

  ofWorker(_worker: string): Promise<ProcessRecord | null> {
    return this.verbs.run('ofWorker', () => null);
  }
}
