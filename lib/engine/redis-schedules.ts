import { RULES } from '../job/rules.js';
import type { EngineSettings } from './wire/clients.js';
import type { RedisStore } from './redis-store.js';
import type {
  DueAnswer,
  FireAnswer,
  FireSchedule,
  PutSchedule,
  ResumeSchedule,
  SchedulePage,
  ScheduleVerbs,
  StoredSchedule,
} from '../contract/schedule-verbs.js';
import {
  declare,
  dueSchedules,
  fire,
  pauseSchedule,
  putSchedule,
  removeSchedule,
  renew,
  resumeSchedule,
  schedules,
  withdraw,
} from './scripts/schedules.js';
import type { Value } from './script.js';
import type {
  Declaration,
  DeclarationVerbs,
  DeclareAnswer,
  DeclareCall,
  RenewAnswer,
} from '../contract/declaration-verbs.js';

/** Schedules on Redis: one script each. */
export class RedisSchedules implements ScheduleVerbs {
  constructor(
    private readonly store: RedisStore,
    private readonly settings: EngineSettings,
    /** Returns which of these queues have a schedule with a next occurrence. */
    readonly scheduled: (queues: readonly string[]) => Promise<readonly string[]>,
  ) {}

  async get(queue: string, id: string): Promise<{ now: number; schedule: StoredSchedule | null }> {
    const { now, total, schedules: found } = await this.read(queue, id, { offset: 0, limit: 1 });
    return { now, schedule: total === 0 ? null : found[0]! };
  }

  async list(queue: string, page: { offset: number; limit: number }): Promise<SchedulePage> {
    const { total, schedules: found } = await this.read(queue, '', page);
    return { total, schedules: found };
  }

  async put(queue: string, { id, revision, record, nextAt }: PutSchedule): Promise<'written' | 'changed'> {
    const keep = nextAt === 'keep';
    await this.store.checkQueue(queue);
    this.store.makeKnown([queue]);
    return this.store.run(putSchedule, this.keys(queue), {
      id,
      revision,
      record,
      keep: keep ? 1 : 0,
      next: keep ? -1 : (nextAt ?? -1),
    });
  }

  remove(queue: string, id: string): Promise<boolean> {
    return this.store.run(removeSchedule, this.keys(queue), { id });
  }

  pause(queue: string, id: string): Promise<'paused' | 'unchanged' | 'not-found'> {
    return this.store.run(pauseSchedule, this.keys(queue), { id });
  }

  resume(queue: string, { id, revision, nextAt }: ResumeSchedule) {
    return this.store.run(resumeSchedule, this.keys(queue), { id, revision, next: nextAt ?? -1 });
  }

  due(queue: string, offset: number): Promise<DueAnswer> {
    return this.store.run(dueSchedules, this.keys(queue), { offset, limit: RULES.dueSchedulesMax });
  }

  fire(queue: string, calls: readonly FireSchedule[]): Promise<FireAnswer> {
    const lists = { schedules: [] as Value[], jobs: [] as Value[] };
    for (const { id, revision, seenAt, nextAt, limit, overlap, afterEndMs, jobs } of calls) {
      lists.schedules.push(
        id,
        revision,
        seenAt,
        nextAt ?? -1,
        limit ?? -1,
        overlap,
        afterEndMs ?? -1,
        jobs.length,
      );
      for (const job of jobs) lists.jobs.push(job.id, job.body, job.at, job.dueAt, job.priority ?? 0);
    }
    const { maxEvents, cancelledMs: keep = 0 } = this.settings.limitsOf(queue);
    return this.store.run(fire, this.keys(queue), { keep, maxEvents }, lists);
  }

  private read(queue: string, id: string, { offset, limit }: { offset: number; limit: number }) {
    return this.store.run(schedules, this.keys(queue), { id, offset, limit });
  }

  private keys(queue: string) {
    return this.store.keysOf(queue).fixed;
  }
}

/** Declarations on Redis: one script each. */
export class RedisDeclarations implements DeclarationVerbs {
  constructor(private readonly store: RedisStore) {}

  declare(queue: string, call: DeclareCall): Promise<DeclareAnswer> {
    const { owner, ttlMs, ids } = call;
    const puts = call.puts.flatMap(({ id, revision, record, nextAt }): Value[] =>
      nextAt === 'keep' ? [id, revision, record, 1, -1] : [id, revision, record, 0, nextAt ?? -1],
    );
    const args = { declaration: textOf(call), owner, ids: ids.join('\n'), ttlMs };
    return this.store.run(declare, this.keys(queue), args, { puts });
  }

  renew(queue: string, declaration: Declaration): Promise<RenewAnswer> {
    const { owner, ttlMs } = declaration;
    return this.store.run(renew, this.keys(queue), { declaration: textOf(declaration), owner, ttlMs });
  }

  async withdraw(queue: string, declaration: Declaration): Promise<void> {
    await this.store.run(withdraw, this.keys(queue), { declaration: textOf(declaration) });
  }

  private keys(queue: string) {
    return this.store.keysOf(queue).fixed;
  }
}

/** The text that the scripts split. None of its words contains a space. */
function textOf({ process, owner, set, ttlMs }: Declaration): string {
  return `${process} ${ttlMs} ${owner}:${set}`;
}
