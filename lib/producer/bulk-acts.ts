import type { DataMatch, PriorityRange, StoredJob } from '../contract/admin-verbs.js';
import { BULK_STATES, type BulkKind } from '../contract/bulk-act-verbs.js';
import type { QueueEngine } from '../contract/engine.js';
import type { CleanCall, DeadMatch } from '../contract/upkeep-verbs.js';
import { InvalidOptionError, WrongStateError } from '../errors.js';
import { EVENT_PAYLOAD } from '../errors/show.js';
import { decodeBody } from '../job/job-record.js';
import { ENDED_STATES, type JobState } from '../job/job-state.js';
import { DEAD_REASONS, type DeadReason } from '../job/outcome.js';
import { encodePayload } from '../job/payload.js';
import { faultOfText, quoted } from '../job/text.js';
import type { Duration } from '../job/duration.js';
import { duration, field, integer, oneOf, refuse, rule, selecting, shape } from '../options/check.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { checkText, checkWhere, readNames, readState, type JobListOptions } from './job-list.js';
import { inSteps, pause } from '../contract/retry.js';
import { checkSignal } from '../options/job-options.js';
import { checkGroup, readPlainRate, type RateOptions } from '../options/limit-options.js';

/**
 * Which jobs `remove`, `cancel` and `promote` act on. A field that is left out matches any job. A field that is `undefined` is refused:
 * by mistake, the call would change all jobs.
 */
export interface JobFilter<Name extends string = string, State extends JobState = JobState> extends Pick<
  JobListOptions<Name>,
  'name' | 'contains' | 'where' | 'group'
> {
  /** Jobs of this state. */
  readonly state: State;
  /** Only jobs that died for this reason; only with `state: 'dead'`. @default any reason */
  readonly reason?: DeadReason;
  /**
   * Only jobs that ended longer ago than this; jobs that have not ended: that were added longer ago than this.
   *
   * @default any age
   */
  readonly olderThan?: Duration;
  /** Only jobs that ended, or were added, within this time. @default any age */
  readonly newerThan?: Duration;
  /** Maximum number of jobs. @default all */
  readonly limit?: number;
}

/** Selects jobs that have not ended; otherwise like `JobFilter`. */
export interface CancelFilter<Name extends string = string> extends Omit<
  JobFilter<Name, 'waiting' | 'delayed' | 'active'>,
  'state' | 'reason'
> {
  /** Jobs of this state. @default all three */
  readonly state?: 'waiting' | 'delayed' | 'active';
}

const FILTER = {
  state: field('state', readState),
  name: field('name', readNames),
  contains: field('contains', rule(checkText)),
  where: field('where', rule(checkWhere)),
  group: field('group', rule(checkGroup)),
  reason: field('reason', oneOf(...DEAD_REASONS)),
  olderThan: field('olderThanMs', duration()),
  newerThan: field('newerThanMs', duration()),
  limit: field('limit', integer(1, Number.MAX_SAFE_INTEGER)),
} as const;
const readFilter = shape(selecting(FILTER));
/** For an act that needs a state. */
const readFilterOfState = shape({ ...selecting(FILTER), state: FILTER.state });

/** A filter after checking. */
export interface CheckedFilter extends DeadMatch {
  readonly states: readonly JobState[];
  readonly contains?: string | undefined;
  readonly where?: DataMatch | undefined;
  readonly group?: string | undefined;
  readonly limit: number;
}

/** Whether the argument is meant as a filter. A wrong argument that is not an object is reported as a wrong id. */
export function isFilter<Filter extends object>(which: string | Filter): which is Filter {
  return typeof which === 'object' && which !== null;
}

/**
 * @param states the states that the action accepts; a filter without a state means all of them.
 * @throws {InvalidOptionError | InvalidJobNameError}
 */
export function checkFilter(
  given: unknown,
  path: string,
  states: readonly JobState[],
  needsState = false,
): CheckedFilter {
  const read = needsState ? readFilterOfState : readFilter;
  const { state, limit = Number.MAX_SAFE_INTEGER, ...match } = read(given, path, refuse)!;
  const choice = `one of ${states.join(', ')}`;
  if (state === undefined ? needsState : !states.includes(state))
    refuse(new InvalidOptionError(`${path}.state`, choice, state));
  if (match.reason !== undefined && state !== 'dead')
    refuse(new InvalidOptionError(`${path}.reason`, "left out unless state is 'dead'", match.reason));
  return { ...match, states: state === undefined ? states : [state], limit };
}

/** Number of ids that are read before the first change. A cursor whose job has left its list is expensive to resume from. */
const CHUNK = 10_000;
/** Number of jobs that are read at once. A step changes at most this many. */
export const PAGE = 100;
export const NO_REASON = 'no reason was given';
/** How much `engine.now()` may be behind the clock of Redis. Without it, jobs added just before the call could count as too young. */
const CLOCK_MS = 100;

/** Changes these jobs, and returns how many it changed. `until`: for dead jobs, the last death that was listed; later ones stay as they are. */
export type Act = (ids: readonly string[], until?: number) => Promise<number>;

/** The implementation of one kind of act. `reason`: that of a `cancel`. */
export function actOf(
  { admin, upkeep }: Pick<QueueEngine, 'admin' | 'upkeep'>,
  queue: string,
  kind: BulkKind,
  reason = NO_REASON,
): Act {
  switch (kind) {
    case 'retry':
      return async (ids, until) => (await upkeep.retryDead(queue, { ids, until })).retried.length;
    case 'promote':
      return (ids) =>
        inSteps(async (changed) => {
          const all = await Promise.allSettled(ids.map((id) => admin.promoteNow(queue, id)));
          const done = count(
            all.map((one) => one.status === 'fulfilled' && one.value),
            'promoted',
          );
          changed(done);
          for (const one of all) if (one.status === 'rejected') throw one.reason;
          return done;
        });
    case 'remove':
      return async (ids, until) =>
        until === undefined
          ? count(await admin.removeAll(queue, ids), 'removed')
          : (await upkeep.removeDead(queue, { ids, until })).removed.length;
    case 'cancel':
      return async (ids) => count(await admin.cancelAll(queue, ids, reason), 'cancelled', 'signalled');
  }
}

function count<Answer>(answers: readonly Answer[], ...changed: readonly Answer[]): number {
  return answers.filter((answer) => changed.includes(answer)).length;
}

/** The parts of a bulk act besides its pace. */
interface ActWalk {
  /** Time since the ages of the filter were fixed, in ms. */
  readonly passedMs: () => number;
  /** Called after each step. `changed`: how many of the `matched` jobs it changed; `examined`: how many it has looked at, in all. */
  readonly onStep: (step: {
    readonly matched: number;
    readonly changed: number;
    readonly examined: number;
  }) => void;
  readonly match: JobMatch;
}

/** @internal Conditions that a filter of `JobFilter` does not have. */
export interface JobMatch {
  readonly isMatch: (job: StoredJob) => boolean;
  /** A text that each match contains. The store searches for it, so it sends few other jobs. */
  readonly contains?: string | undefined;
  /** The group of all matches. */
  readonly group?: string | undefined;
  /** The priorities and the workers of all matches. */
  readonly priority?: PriorityRange | undefined;
  readonly workers?: readonly string[] | undefined;
}

/**
 * Calls `act` for the matching jobs, in the order of the list and in small steps. Returns how many jobs it changed. With a rate or
 * `onProgress`, and in the background, it leaves jobs alone that were added or ended after it began: new ones could arrive faster
 * than it works.
 */
export function actOnAll(
  engine: QueueEngine,
  queue: string,
  filter: CheckedFilter,
  act: Act,
  pace?: CheckedPace,
  walk?: ActWalk,
): Promise<number> {
  return paced(pace, (pacer) => actInSteps(engine, queue, filter, act, pacer, pace, walk));
}

async function actInSteps(
  engine: QueueEngine,
  queue: string,
  { states, limit, ...filter }: CheckedFilter,
  act: Act,
  pacer: Pacer,
  pace?: CheckedPace,
  walk?: ActWalk,
): Promise<number> {
  const passedMs = walk?.passedMs ?? (() => pacer.passedMs);
  const isFixed = (walk ?? pace?.rate ?? pace?.onProgress) !== undefined;
  const { priority, workers } = walk?.match ?? {};
  const contains = filter.contains ?? walk?.match.contains;
  const group = filter.group ?? walk?.match.group;
  const match = { ...filter, contains, group, priority, workers };
  let done = 0;
  let examined = 0;
  // Only `cancel` has several states. A running job may fail and be delayed after the delayed jobs were listed, so they are listed again.
  const inOrder = states.length > 1 ? [...states, states[0]!] : states;
  for (const state of inOrder) {
    let after = null;
    do {
      const found: StoredJob[] = [];
      const before = examined;
      do {
        const aged = isFixed ? agedBy(match, Math.max(0, passedMs() - CLOCK_MS)) : match;
        const page = await engine.admin.jobs(queue, {
          ...asked(state, aged),
          state,
          after,
          limit: PAGE,
          brief: true,
        });
        const isMatch = (job: StoredJob) =>
          isOfAge(job, aged, engine.now()) && walk?.match.isMatch(job) !== false;
        examined += page.examined;
        found.push(...page.jobs.filter(isMatch));
        after = page.next;
      } while (after !== null && found.length < Math.min(CHUNK, limit - done) && !pacer.isStopped);
      for (let at = 0, some; (some = await pacer.step(found, at, limit - done)); at += some.length) {
        const until = lastDeath(some);
        // At a rate, minutes may have passed since the jobs were listed.
        const isOld = until === undefined && pace?.rate !== undefined;
        const count = await act(isOld ? await unchangedIds(engine, queue, states, some) : idsOf(some), until);
        done += count;
        pacer.add(count);
        // Jobs of this chunk that it has read but not reached do not count yet.
        const share = (at + some.length) / found.length;
        const reached = before + Math.round((examined - before) * share);
        walk?.onStep({ matched: some.length, changed: count, examined: reached });
      }
      if (!pacer.isStopped) walk?.onStep({ matched: 0, changed: 0, examined });
    } while (after !== null && done < limit && !pacer.isStopped);
  }
  return done;
}

/** When the last of these dead jobs died; undefined if they are not dead. */
export function lastDeath(jobs: readonly StoredJob[]): number | undefined {
  return jobs[0]?.state === 'dead' ? Math.max(...jobs.map(({ endedAt }) => endedAt ?? 0)) : undefined;
}

export function idsOf(jobs: readonly StoredJob[]): readonly string[] {
  return jobs.map(({ id }) => id);
}

/** The ids of those jobs that are still in one of these states. */
async function unchangedIds(
  { admin }: Pick<QueueEngine, 'admin'>,
  queue: string,
  states: readonly JobState[],
  jobs: readonly StoredJob[],
): Promise<readonly string[]> {
  const there = await Promise.all(jobs.map(({ id }) => admin.get(queue, id, true)));
  const unchanged = jobs.filter(({ endedAt }, at) => {
    const now = there[at];
    return now && states.includes(now.state) && now.endedAt === endedAt;
  });
  return idsOf(unchanged);
}

/** @throws {InvalidOptionError | InvalidJobNameError} */
export async function removeAll(
  engine: QueueEngine,
  queue: string,
  given: unknown,
  givenPace?: unknown,
): Promise<number> {
  const filter = checkFilter(given, 'remove()', BULK_STATES.remove, true);
  const pace = paceOf(givenPace, 'remove()');
  const remove = actOf(engine, queue, 'remove');
  const { rate, onProgress, signal } = pace ?? {};
  if (rate ?? onProgress) return actOnAll(engine, queue, filter, remove, pace);
  if (signal?.aborted === true) return 0;
  const { states, contains, where, group, limit, ...match } = filter;
  const state = states[0] as CleanCall['state'];
  const { name, newerThanMs, olderThanMs = 0 } = match;
  // One script call removes many jobs if the script can evaluate the filter.
  const isByBody = (contains ?? where ?? group) !== undefined;
  if (state === 'dead' && !isByBody)
    return (await engine.upkeep.removeDead(queue, { ...match, limit, signal })).removed.length;
  const isPlain =
    !isByBody && (name ?? newerThanMs) === undefined && (state !== 'waiting' || olderThanMs === 0);
  if (isPlain)
    return (await engine.upkeep.clean(queue, { state, olderThanMs, limit, signal })).removed.length;
  return actOnAll(engine, queue, filter, remove, pace);
}

/** The store filters by age and reason only among dead jobs. For other states `isOfAge` checks the age. */
function asked(
  state: JobState,
  match: Omit<CheckedFilter, 'states' | 'limit'> & Pick<JobMatch, 'group' | 'priority' | 'workers'>,
) {
  const { name, contains, where, group, priority, workers } = match;
  return state === 'dead' ? match : { name, contains, where, group, priority, workers };
}

function isOfAge(job: StoredJob, { olderThanMs = 0, newerThanMs }: DeadMatch, now: number): boolean {
  if (olderThanMs === 0 && newerThanMs === undefined) return true;
  const hasEnded = (ENDED_STATES as readonly JobState[]).includes(job.state);
  const since = hasEnded ? job.endedAt : decodeBody(`${job.body}null`)?.createdAt;
  if (since === undefined || since === null) return false;
  return now - since >= olderThanMs && now - since <= (newerThanMs ?? Infinity);
}

const MAX_REASON_BYTES = 1000;

export function checkCancelReason(reason: unknown, path: string): string {
  if (reason === undefined) return NO_REASON;
  if (faultOfText(reason, MAX_REASON_BYTES) === undefined) return reason as string;
  const rule = `1 to ${MAX_REASON_BYTES} bytes of well-formed text without control characters`;
  throw new InvalidOptionError(path, rule, reason);
}

const MAX_EVENT_NAME_BYTES = 255;
/** A larger payload would need its own limit in the event stream, as progress has. */
const MAX_EVENT_BYTES = 1_000;

/** The JSON of an event that the application publishes. Throws as `Queue.publish` does. */
export function checkEvent(queue: ResolvedQueueOptions, name: unknown, payload: unknown): string {
  const fault = faultOfText(name, MAX_EVENT_NAME_BYTES);
  if (fault !== undefined) {
    const expected = `1 to ${MAX_EVENT_NAME_BYTES} bytes of well-formed text without control characters`;
    throw new InvalidOptionError('publish().name', expected, name);
  }
  if (queue.events.max === 0)
    throw new WrongStateError(
      queue.name,
      `event ${quoted(name as string)}`,
      'not stored',
      'the option events is false or its max is 0, so nobody could read it',
    );
  const rules = { ...queue, maxPayloadBytes: MAX_EVENT_BYTES };
  return encodePayload(payload === undefined ? null : payload, 'publish().payload', rules, EVENT_PAYLOAD);
}

/** How `dead.retry`, `remove`, `cancel` and `promote` work through all jobs that match a filter. */
export interface BulkPace {
  /** At most `max` jobs in `per`, evenly spaced. @default as fast as Redis answers */
  readonly rate?: Pick<RateOptions, 'max' | 'per'>;
  /** Called after each step with the number of jobs that are changed so far. @default none */
  readonly onProgress?: (done: number) => void;
  /** Stops the call after the current step. It then returns the number of jobs that it has changed. @default none */
  readonly signal?: AbortSignal;
}

const readPace = shape({
  rate: field('rate', readPlainRate),
  onProgress: field('onProgress', rule(checkListener)),
  signal: field('signal', rule(checkSignal)),
});
/** A pace after checking. */
export type CheckedPace = NonNullable<ReturnType<typeof readPace>>;

function checkListener(value: unknown, path: string): (done: number) => void {
  if (typeof value === 'function') return value as (done: number) => void;
  throw new InvalidOptionError(path, 'a function', value);
}

/** @throws {InvalidOptionError} */
export function paceOf(given: unknown, call: string): CheckedPace | undefined {
  return given === undefined ? undefined : readPace(given, `${call}.pace`, refuse)!;
}

/** At a rate, one step changes the jobs of this time, but at least one. */
const STEP_MS = 100;

/** Runs a call at this pace. */
export function paced(
  pace: CheckedPace | undefined,
  work: (pacer: Pacer) => Promise<number>,
): Promise<number> {
  return inSteps((changed) => work(new Pacer(pace, changed)));
}

/** Divides a list of ids into steps, and waits between them. */
export class Pacer {
  private readonly gapMs: number;
  private readonly began = performance.now();
  private nextAt = 0;
  private done = 0;

  constructor(
    private readonly pace: CheckedPace | undefined,
    private readonly changed: (count: number) => void,
  ) {
    const { rate } = pace ?? {};
    this.gapMs = rate ? rate.per / rate.max : 0;
  }

  get isStopped(): boolean {
    return this.pace?.signal?.aborted === true;
  }

  /** Time since the call began, in whole ms. */
  get passedMs(): number {
    return Math.floor(performance.now() - this.began);
  }

  /** The next step of these ids after the first `from`, as soon as the rate allows it. Null at the end, or after a stop. */
  async step<Id>(ids: readonly Id[], from: number, limit = Infinity): Promise<readonly Id[] | null> {
    if (from >= ids.length || limit <= 0 || this.isStopped) return null;
    const restMs = this.nextAt - performance.now();
    if (restMs > 0) await pause(restMs, this.pace?.signal);
    if (this.isStopped) return null;
    const size = Math.min(PAGE, limit, Math.max(1, Math.floor(STEP_MS / this.gapMs)));
    const some = ids.slice(from, from + size);
    this.nextAt = performance.now() + some.length * this.gapMs;
    return some;
  }

  /** Reports how many jobs a step has changed. */
  add(count: number): void {
    this.changed(count);
    this.done += count;
    this.pace?.onProgress?.(this.done);
  }
}

/** A match with the same ages, counted from `passedMs` ago. */
export function agedBy<Match extends DeadMatch>(match: Match, passedMs: number): Match {
  const { olderThanMs = 0, newerThanMs } = match;
  return {
    ...match,
    olderThanMs: olderThanMs + passedMs,
    ...(newerThanMs !== undefined && { newerThanMs: newerThanMs + passedMs }),
  };
}
