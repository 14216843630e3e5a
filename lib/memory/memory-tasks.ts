import type { DispatchAnswer, TaskVerbs } from '../contract/task-verbs.js';
import type { Verbs } from './verbs.js';

/** Queues of other programs, none of which can put anything into the memory of this one: there is never a task. */
export class MemoryTasks implements TaskVerbs {
  constructor(private readonly verbs: Verbs) {}

  dispatch(): Promise<DispatchAnswer> {
    return this.verbs.run('dispatch', () => ({ dispatched: 0, delayed: 0, ready: 0, dueInMs: null }));
  }
}
