import type {
  DueAnswer,
  FireAnswer,
  FireSchedule,
  PutSchedule,
  ResumeSchedule,
  SchedulePage,
  ScheduleVerbs,
  StoredSchedule,
} from '../engine/schedule-verbs.js';
import type { Verbs } from './verbs.js';

export class MemorySchedules implements ScheduleVerbs {
  constructor(private readonly verbs: Verbs) {}

  get(queue: string, _id: string): Promise<{ now: number; schedule: StoredSchedule | null }> {
    return this.verbs.on('get', queue, (q) => ({ now: q.now, schedule: null }));
  }

  list(queue: string): Promise<SchedulePage> {
    return this.verbs.on('list', queue, () => ({ total: 0, schedules: [] }));
  }

  put(queue: string, _call: PutSchedule): Promise<'written' | 'changed'> {
    return this.verbs.on('put', queue, () => 'changed' as const);
  }

  remove(queue: string, _id: string): Promise<boolean> {
    return this.verbs.on('remove', queue, () => false);
  }

  pause(queue: string, _id: string): Promise<'paused' | 'unchanged' | 'not-found'> {
    return this.verbs.on('pause', queue, () => 'not-found' as const);
  }

  resume(queue: string, _call: ResumeSchedule): Promise<'resumed' | 'unchanged' | 'changed' | 'not-found'> {
    return this.verbs.on('resume', queue, () => 'not-found' as const);
  }

  due(queue: string): Promise<DueAnswer> {
    return this.verbs.on('due', queue, (q) => ({ now: q.now, due: [], nextInMs: null }));
  }

  fire(queue: string, calls: readonly FireSchedule[]): Promise<FireAnswer> {
    return this.verbs.on('fire', queue, () => ({ made: calls.map(() => null), due: 0, nextInMs: null }));
  }

  scheduled(): Promise<readonly string[]> {
    return this.verbs.run('scheduled', () => []);
  }
}
