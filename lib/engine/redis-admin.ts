import type { AuditReport, RepairReport } from '../job/audit-report.js';
import { decodeBody, expiresAt } from '../job/job-record.js';
import type { JobState } from '../job/job-state.js';
import { RULES } from '../job/rules.js';
import {
  indexFrom,
  MOST_EXAMINED,
  type AdminVerbs,
  type CancelAnswer,
  type DataMatch,
  type JobsAnswer,
  type JobsCall,
  type LastFull,
  type RemoveAnswer,
  type StoredJob,
  type PromoteAnswer,
  type UpdateAnswer,
  type UpdateCall,
  QueueCounts,
} from '../contract/admin-verbs.js';
import type { Place } from '../contract/upkeep-verbs.js';
import { inSteps } from '../contract/retry.js';
import { BEGINNING, BYTES, LINES, MOVE, walkArgs } from './walks.js';
import {
  cancel,
  countMinutes,
  counts,
  get,
  obliterate,
  oldest,
  page,
  pause,
  promoteNow,
  publish,
  remove,
  stats,
  update,
} from './scripts/admin.js';
import type { QueueKeys } from './keys.js';
import { Auditor } from './auditor.js';
import type { EngineSettings } from './wire/clients.js';
import type { RecoverAnswer, RecoverCall } from '../contract/engine.js';
import {
  encodeRow,
  fieldOf,
  MAX_ROWS,
  readRows,
  type CountedBy,
  type StoredMinuteRow,
  type MinutesCall,
} from '../contract/history.js';
import { readStats, type QueueStats } from '../contract/stats.js';
import { fullIn, stamped } from './codec/replies.js';
import type { RedisStore } from './redis-store.js';

/** How many entries of a key `MEMORY USAGE` looks at. */
const SAMPLES = 200;

/** The management verbs on Redis. Each is one script, except for walks through a large queue. */
export class RedisAdmin implements AdminVerbs {
  constructor(
    private readonly store: RedisStore,
    private readonly settings: EngineSettings,
    private readonly recover: (queue: string, call: RecoverCall) => Promise<RecoverAnswer>,
  ) {}

  async get(queue: string, id: string, isBrief = false): Promise<StoredJob | null> {
    const brief = isBrief ? 1 : 0;
    const found = await this.store.withWorkers(queue, ({ workers, active }, keys) =>
      this.store.run(get, { ...keys.fixed, bodies: keys.bodies(id) }, { id, workers, brief }, {}, active),
    );
    return found && { id, ...found };
  }

  async jobs(queue: string, call: JobsCall): Promise<JobsAnswer> {
    const { state, limit, backward = false, offset = 0 } = call;
    const keys = this.store.keysOf(queue);
    const all = state === 'active' ? await this.holdersOf(queue, call.workers) : linesOf(state);
    if (backward) all.reverse();
    if (call.group !== undefined) all.sort((a, b) => Number(b === 'grouped') - Number(a === 'grouped'));
    const start = offset > 0 ? await this.startBehind(keys, all, call, offset) : null;
    if (offset > 0 && start === null) return { jobs: [], next: null, examined: 0 };
    const after = start ?? call.after;
    let skip = start?.skip ?? 0;
    const lines = after === null ? all : all.slice(indexFrom(all, after.line, backward));
    const jobs: StoredJob[] = [];
    let examined = 0;
    for (const [i, line] of lines.entries()) {
      let from: Place = line === after?.line ? after : BEGINNING;
      for (;;) {
        const answer = await this.pageOf(keys, line, from, limit - jobs.length, { ...call, offset: skip });
        skip = 0;
        jobs.push(...answer.jobs);
        examined += answer.examined;
        if (answer.next === null) break;
        if (jobs.length >= limit || examined >= MOST_EXAMINED)
          return { jobs, next: { line, ...answer.next }, examined };
        from = answer.next;
      }
      if (jobs.length < limit) continue;
      const rest = lines.slice(i + 1);
      const sizes = rest.map((one) => this.store.command('jobs', 'exists', [keyOf(keys, state, one)]));
      const next = (await Promise.all(sizes)).indexOf(1);
      return { jobs, next: next < 0 ? null : { line: rest[next]!, ...BEGINNING }, examined };
    }
    return { jobs, next: null, examined };
  }

  counts(queue: string): Promise<QueueCounts> {
    return this.store.withWorkers(
      queue,
      ({ workers, active }, keys) => this.store.run(counts, keys.fixed, { workers }, {}, active),
      true,
    );
  }

  async oldestWaitingMs(queue: string): Promise<number | null> {
    const { now, heads } = await this.store.run(oldest, this.store.keysOf(queue).fixed, {
      look: RULES.oldestMax,
    });
    let oldestMs: number | null = null;
    for (const head of heads) {
      const body = decodeBody(`${head}null`);
      if (body) oldestMs = Math.max(oldestMs ?? 0, now - expiresAt(body, 0)!);
    }
    return oldestMs;
  }

  async lastFull(queue: string): Promise<LastFull | null> {
    const { meta } = this.store.keysOf(queue).fixed;
    return fullIn((await this.store.command('lastFull', 'hget', [meta, 'full'])) ?? '');
  }

  async remove(queue: string, id: string): Promise<RemoveAnswer> {
    return (await this.removeAll(queue, [id]))[0]!;
  }

  removeAll(queue: string, ids: readonly string[]): Promise<RemoveAnswer[]> {
    const { maxEvents } = this.settings.limitsOf(queue);
    return answersFor(ids, (some) =>
      this.store.withWorkers(queue, ({ workers, active }, keys) =>
        this.store.run(remove, keys.fixed, { bytes: BYTES, workers, maxEvents }, { ids: some }, active),
      ),
    );
  }

  async cancel(queue: string, id: string, reason: string): Promise<CancelAnswer> {
    return (await this.cancelAll(queue, [id], reason))[0]!;
  }

  cancelAll(queue: string, ids: readonly string[], reason: string): Promise<CancelAnswer[]> {
    const { maxEvents, cancelledMs: keep = 0 } = this.settings.limitsOf(queue);
    return answersFor(ids, (some) =>
      this.store.withWorkers(queue, ({ workers, active }, keys) => {
        const named = { ...keys.fixed, stats: keys.stats(this.store.today()) };
        const args = { reason, keep, bytes: BYTES, workers, maxEvents };
        return this.store.run(cancel, named, args, { ids: some }, active);
      }),
    );
  }

  async cancelled(queue: string, id: string): Promise<{ reason: string; agoMs: number } | null> {
    const { cancelled } = this.store.keysOf(queue).fixed;
    const [at, reason] = stamped((await this.store.command('cancelled', 'hget', [cancelled, id])) ?? '');
    return at === null || reason === null ? null : { reason, agoMs: this.store.now() - at };
  }

  /** Reads one day per script: with many job names, all days in one script would block Redis for long. */
  async stats(queue: string, days: number): Promise<QueueStats> {
    const keys = this.store.keysOf(queue).statsUntil(this.store.now(), days);
    const read = keys.map(async ({ date, key }) => {
      return { date, counters: await this.store.run(stats, { stats: key }, {}) };
    });
    return readStats(await Promise.all(read));
  }

  update(queue: string, call: UpdateCall): Promise<UpdateAnswer> {
    return this.store.withWorkers(queue, ({ workers, active }, { fixed }) =>
      this.store.run(update, fixed, this.updateArgs(queue, call, workers), {}, active),
    );
  }

  /** Stores new data of a job that this worker runs. Resolves to whether the worker still holds the job. */
  async updateHeld(queue: string, worker: string, { id, data }: UpdateCall): Promise<boolean> {
    const keys = this.store.keysOf(queue);
    const args = { ...this.updateArgs(queue, { id, data: data! }, ''), worker };
    const answer = await this.store.run(update, keys.fixed, args, {}, [keys.active(worker)]);
    return answer !== 'again' && answer.kind === 'updated';
  }

  private updateArgs(queue: string, call: UpdateCall, workers: string) {
    const { id, name = '', data = '', seenData = '', options, delayMs, dueAt, priority = -1 } = call;
    const due = dueAt === undefined ? (delayMs === undefined ? '' : `+${delayMs}`) : String(dueAt);
    const { seen = '', changed = '' } = options ?? {};
    const { maxEvents } = this.settings.limitsOf(queue);
    const lines = { hasOptions: options ? 1 : 0, seen, options: changed };
    return { id, worker: '', workers, name, data, seenData, ...lines, due, priority, maxEvents };
  }

  promoteNow(queue: string, id: string): Promise<PromoteAnswer> {
    const keys = this.store.keysOf(queue);
    return this.store.run(promoteNow, { ...keys.fixed, bodies: keys.bodies(id) }, { id });
  }

  async memoryBytes(queue: string): Promise<number> {
    const sizes = Object.values(this.store.keysOf(queue).fixed).map((key) =>
      this.store.command('memoryBytes', 'memory', ['usage', key, 'samples', SAMPLES], key),
    );
    return (await Promise.all(sizes)).reduce((sum: number, size: number | null) => sum + (size ?? 0), 0);
  }

  serverInfo(queue: string): Promise<string | null> {
    return this.store.command('serverInfo', 'info', [], this.store.keysOf(queue).fixed.meta);
  }

  async tryWrite(queue: string): Promise<void> {
    // No producer has a lane without a name, so the key does not exist, and `XX` writes nothing. Unlike DEL, this also needs memory.
    await this.store.command('tryWrite', 'set', [this.store.keysOf(queue).lane(''), '', 'XX']);
  }

  countMinutes(queue: string, { by, lane, seq, hour, rows }: MinutesCall): Promise<void> {
    const keys = { minutes: this.store.keysOf(queue).minutes(hour, by) };
    const lists = { fields: rows.map(fieldOf), counts: rows.map(({ row }) => encodeRow(row)) };
    return this.store.run(countMinutes, keys, { lane, seq, maxFields: MAX_ROWS }, lists);
  }

  async minutes(queue: string, hours: readonly number[], by: CountedBy): Promise<StoredMinuteRow[]> {
    const keys = this.store.keysOf(queue);
    const read = hours.map(async (hour) => {
      const found = (await this.store.command('minutes', 'hgetall', [keys.minutes(hour, by)])) as Record<
        string,
        string
      >;
      return readRows(hour, Object.entries(found).flat());
    });
    return (await Promise.all(read)).flat();
  }

  async publish(queue: string, name: string, payload: string): Promise<void> {
    const { maxEvents } = this.settings.limitsOf(queue);
    await this.store.run(publish, this.store.keysOf(queue).fixed, { name, payload, maxEvents });
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

  async obliterate(queue: string, force: boolean): Promise<'obliterated' | 'active'> {
    // On Redis Cluster the list of queues may be on a node that is down. Then nothing must be deleted.
    await this.store.touchRegistry();
    const answer = await this.store.withWorkers(queue, ({ names, workers }, keys) =>
      this.store.run(obliterate, keys.fixed, { force: force ? 1 : 0, workers }, {}, [
        ...names.flatMap((worker) => [keys.active(worker), keys.worker(worker)]),
        ...keys.everyStats(this.store.now()),
        ...keys.everyMinutes(this.store.now()),
      ]),
    );
    if (answer === 'obliterated') await this.store.forgetQueue(queue);
    return answer;
  }

  audit(queue: string): Promise<AuditReport> {
    return this.auditor(0).audit(queue);
  }

  repair(queue: string, maxStalls: number): Promise<RepairReport> {
    return this.auditor(maxStalls).repair(queue);
  }

  /**
   * Reads one step of a page. Lists move between two pages: if the jobs around the end of the previous page are not near their old place,
   * the whole list is searched, first towards its head. If they have left the list, the jobs before them have left too, so the page
   * starts at the head. In the opposite order the jobs behind them have left, so there are no more.
   */
  private async pageOf(keys: QueueKeys, line: string, from: Place, limit: number, call: JobsCall) {
    const {
      state,
      group = '',
      contains = '',
      where,
      priority = { from: -1, to: 0 },
      offset: skip = 0,
      backward = false,
      brief = false,
      ...match
    } = call;
    const isActive = state === 'active';
    const ask = (after: Place) =>
      this.store.run(
        page,
        { ...keys.fixed, active: keys.active(isActive ? line : '') },
        {
          ...walkArgs({ after, limit, until: 0 }, match),
          // Reading a whole job takes several reads, so one call returns at most 50.
          limit: Math.min(limit, 50),
          examine: 100,
          kind: isActive ? 'active' : line,
          worker: isActive ? line : '',
          group,
          contains,
          where: where ? wantedOf(where) : '',
          priorityFrom: priority.from,
          priorityTo: priority.to,
          skip,
          backward: backward ? 1 : 0,
          brief: brief ? 1 : 0,
        },
      );
    const answer = await ask(from);
    if (answer.missed === null) return answer;
    for (const at of elsewhere(Number(from.at), answer.missed)) {
      const found = await ask({ ...from, at: String(at) });
      if (found.missed === null) return found;
    }
    return backward ? answer : ask(BEGINNING);
  }

  /**
   * Where a page begins after `offset` jobs of these lines: a place, and how many more jobs a sorted line skips. Null if there
   * are not that many.
   */
  private async startBehind(keys: QueueKeys, lines: readonly string[], call: JobsCall, offset: number) {
    const { state, backward = false } = call;
    let rest = offset;
    for (const line of lines) {
      const key = keyOf(keys, state, line);
      const send = (name: string, ...args: number[]) => this.store.command('jobs', name, [key, ...args]);
      const index = backward ? -rest : rest - 1;
      if (line === 'wait' || line === 'suspects') {
        const [size, id] = await Promise.all([send('llen'), send('lindex', index)]);
        if (rest === 0 || id !== null)
          return { line, at: rest === 0 ? '' : String(rest - 1), id: id ?? '', skip: 0 };
        rest -= size;
      } else if (state === 'active') {
        const ids = ((await send('smembers')) as string[]).toSorted();
        if (rest <= ids.length) return { line, at: '', id: rest === 0 ? '' : ids.at(index)!, skip: 0 };
        rest -= ids.length;
      } else {
        const size = (await send('zcard')) as number;
        if (rest <= size) return { line, ...BEGINNING, skip: rest };
        rest -= size;
      }
    }
    return null;
  }

  /** The workers with active jobs, or those of them that are asked for. */
  private async holdersOf(queue: string, asked?: readonly string[]): Promise<string[]> {
    const names = (await this.store.readWorkers(queue)).names.toSorted();
    return asked ? names.filter((name) => asked.includes(name)) : names;
  }

  private auditor(maxStalls: number): Auditor {
    const { limitsOf } = this.settings;
    return new Auditor(this.store, {
      limitsOf,
      recover: (queue, worker) => {
        const { leaseMs } = limitsOf(queue);
        return this.recover(queue, { worker, beatMs: leaseMs / 4, leaseMs, maxStalls });
      },
    });
  }
}

/** For each field, the text that JSON writes for it. The script decodes only jobs whose data contains these texts. */
function wantedOf(where: DataMatch): string {
  const wanted = Object.entries(where).map(([path, value]) => {
    const steps = path.split('.');
    return [`${JSON.stringify(steps.at(-1))}:${JSON.stringify(value)}`, steps, value];
  });
  return JSON.stringify(wanted);
}

/** The lines of a state, in the order in which workers take jobs from them. */
function linesOf(state: Exclude<JobState, 'active'>): string[] {
  return state === 'waiting' ? ['suspects', 'wait', 'prioritized', 'grouped'] : [...LINES[state]];
}

function keyOf(keys: QueueKeys, state: JobState, line: string): string {
  if (state === 'active') return keys.active(line);
  // Completed and cancelled jobs are in one key. The key `cancelled` has only reasons.
  return keys.fixed[state === 'cancelled' ? 'completed' : (line as 'wait')];
}

/** How far around a place the script searches for the jobs. */
const AROUND = 2_000;

/** The other places to search if the jobs are not near this one, which a cursor named: it may have any number. */
function* elsewhere(at: number, length: number): Generator<number> {
  for (let nearer = Math.min(at, length) - 2 * AROUND; nearer > -AROUND; nearer -= 2 * AROUND)
    yield Math.max(0, nearer);
  for (let farther = at + 2 * AROUND; farther < length + AROUND; farther += 2 * AROUND) yield farther;
}

/** Calls `ask` with some ids at a time, and again with the ids that got an empty answer, until each id has an answer. */
async function answersFor<Answer extends string>(
  ids: readonly string[],
  ask: (some: readonly string[]) => Promise<(Answer | '')[]>,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  return inSteps(async (changed) => {
    for (let left = [...ids.keys()]; left.length > 0;) {
      const some = left.slice(0, MOVE);
      const given = await ask(some.map((at) => ids[at]!));
      const later = some.filter((at, i) => {
        const answer = given[i]!;
        if (answer !== '') answers[at] = answer;
        return answer === '';
      });
      // Ids without a job have answers too. If no job was changed, 'partly' is too careful, but safe.
      changed(some.length - later.length);
      left = [...later, ...left.slice(MOVE)];
    }
    return answers;
  });
}
