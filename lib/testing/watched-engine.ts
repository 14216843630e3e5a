import type { AdminVerbs } from '../contract/admin-verbs.js';
import type { QueueEngine } from '../contract/engine.js';
import type { ScheduleVerbs } from '../contract/schedule-verbs.js';
import type { Records } from './records.js';

/** Who looks on. */
export interface EngineWatcher {
  recordsOf(queue: string): Records;
  /** Something was asked that may have changed where jobs are. */
  stirred(): void;
  /** A running job is to end. */
  cancelled(queue: string, id: string, reason: string): void;
}

/** Verbs after which jobs may be elsewhere. */
const STIRRING: ReadonlySet<PropertyKey> = new Set<keyof QueueEngine>([
  'enqueue',
  'exchange',
  'recover',
  'release',
  'promote',
]);

/** The same engine, whose calls are seen. */
export function watchEngine(engine: QueueEngine, watcher: EngineWatcher): QueueEngine {
  const verbs: Partial<QueueEngine> = {
    enqueue: async (queue, call) => {
      const answer = await engine.enqueue(queue, call);
      if (answer.kind === 'stored') {
        const there = new Set(answer.duplicates);
        const added = call.jobs.filter(({ id }) => !there.has(id));
        watcher.recordsOf(queue).stored(added, engine.now());
      }
      watcher.stirred();
      return answer;
    },
    exchange: async (queue, call) => {
      const answer = await engine.exchange(queue, call);
      watcher.recordsOf(queue).exchanged(call, answer);
      watcher.stirred();
      return answer;
    },
    admin: overlay<AdminVerbs>(engine.admin, {
      cancel: async (queue, id, reason) => {
        const answer = await engine.admin.cancel(queue, id, reason);
        if (answer === 'signalled') watcher.cancelled(queue, id, reason);
        watcher.stirred();
        return answer;
      },
    }),
    schedules: overlay<ScheduleVerbs>(engine.schedules, {
      fire: async (queue, calls) => {
        const answer = await engine.schedules.fire(queue, calls);
        watcher.recordsOf(queue).fired(calls, answer, engine.now());
        watcher.stirred();
        return answer;
      },
    }),
  };
  return overlay(engine, verbs, (name) => STIRRING.has(name) && (() => watcher.stirred()));
}

/** An object with some of its members replaced; the others go on with the object itself as `this`. */
function overlay<T extends object>(
  target: T,
  members: Partial<T>,
  after: (name: PropertyKey) => (() => void) | false = () => false,
): T {
  return new Proxy(target, {
    get(_, name) {
      if (name in members) return members[name as keyof T];
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      const then = after(name);
      if (!then) return member.bind(target) as unknown;
      return async (...args: unknown[]) => {
        const answer: unknown = await Reflect.apply(member, target, args);
        then();
        return answer;
      };
    },
  });
}
