import type { DispatchAnswer, DispatchCall, TaskVerbs } from '../engine/task-verbs.js';
import type { Verbs } from './verbs.js';

export class MemoryTasks implements TaskVerbs {
  constructor(private readonly verbs: Verbs) {}

  dispatch(_call: DispatchCall): Promise<DispatchAnswer> {
    return this.verbs.run('dispatch', () => ({ dispatched: 0, delayed: 0, ready: 0, dueInMs: null }));
  }
}
