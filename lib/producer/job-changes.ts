import type { QueueEngine } from '../contract/engine.js';
import { DuplicateJobError, InvalidOptionError, JobNotFoundError, WrongStateError } from '../errors.js';
import { checkGiven, type AnyDefinition } from '../job/define-job.js';
import type { Duration } from '../job/duration.js';
import { checkJobId } from '../job/job-id.js';
import { NO_PRIORITY_IN_STRICT_ORDER } from '../options/limit-options.js';
import { bodyAgain, changeOptions, decodeBody, optionsLineOf } from '../job/job-record.js';
import { encodePayload, readData } from '../job/payload.js';
import { RULES } from '../job/rules.js';
import { quoted } from '../job/text.js';
import { field, integer, refuse, rule, shape } from '../options/check.js';
import { checkDelay, checkMoment } from '../options/job-options.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import type { AddResult } from './add-result.js';
import { ANY_DATA, WAIT_OR_REMOVE } from './dead-jobs.js';
import type { MadeJob } from './job-maker.js';
import { date, dueTimeOf } from './job-snapshot.js';

/** The changes of `queue.update`: at least one field. Fields that are left out stay unchanged. */
export interface JobChanges<Data = unknown> {
  /** The new data, as a whole. */
  readonly data?: Data;
  /** Run it after this time, counted from now; 0 runs a delayed job now. */
  readonly delay?: Duration;
  /** Run it at this moment; not together with `delay`. A number is ms since 1970. */
  readonly runAt?: Date | number;
  /**
   * 0 to 2,097,151, as in `add`. A waiting job goes to the end of its new priority. Refused for a job with a group in strict order,
   * except 0.
   */
  readonly priority?: number;
}

/** The result of `queue.update`. */
export interface UpdateResult {
  /** Id of the job. */
  readonly id: string;
  /** Its state after the change. */
  readonly state: 'waiting' | 'delayed';
  /** When it is due, if it is delayed. Null if it waits for the end of another job (`keepLast`). */
  readonly dueAt: Date | null;
}

const readChanges = shape({
  data: ANY_DATA,
  delay: field('delayMs', rule(checkDelay)),
  runAt: field('dueAt', rule(checkMoment)),
  priority: field('priority', integer(0, RULES.priorityMax)),
});

/** @throws {InvalidOptionError} */
function checkChanges(changes: unknown) {
  const checked = readChanges(changes, 'update().changes', refuse)!;
  if (Object.keys(checked).length === 0)
    throw new InvalidOptionError(
      'update().changes',
      'an object with data, delay, runAt or priority',
      changes,
    );
  if (checked.delayMs !== undefined && checked.dueAt !== undefined)
    throw new InvalidOptionError(
      'update().changes.runAt',
      'left out if delay is given',
      (changes as JobChanges).runAt,
    );
  return checked;
}

/** @param definition the job must be of this one; its schema checks the data. */
export async function updateJob(
  engine: QueueEngine,
  queueOptions: ResolvedQueueOptions,
  id: string,
  changes: unknown,
  definition?: AnyDefinition,
): Promise<UpdateResult> {
  const { name: queue } = queueOptions;
  const { data, ...rest } = checkChanges(changes);
  const json = data && encodePayload(data.given, 'update().changes.data', queueOptions);
  if (definition && json !== undefined) await checkGiven(definition, readData(data!.given), json);
  const call = {
    id: checkJobId(id),
    ...rest,
    ...(definition && { name: definition.name }),
    ...(json !== undefined && { data: json }),
  };
  const { delayMs, dueAt, priority } = rest;
  const job = `job ${quoted(id)}`;
  for (;;) {
    const options = await changedOptions();
    const answer = await engine.admin.update(queue, options ? { ...call, options } : call);
    switch (answer.kind) {
      case 'updated': {
        const { state, dueAt: due } = answer;
        return { id, state: state as UpdateResult['state'], dueAt: date(dueTimeOf(due)) };
      }
      case 'changed':
        continue;
      case 'not-found':
        throw new JobNotFoundError(queue, id);
      case 'other-name':
        throw new InvalidOptionError(
          'update()',
          `the definition of ${job}`,
          definition!.name,
          `update(): ${job} in queue '${queue}' is not a ${quoted(definition!.name)} job; pass the definition of its name, or only its id`,
        );
      case 'unreadable':
        throw new WrongStateError(
          queue,
          job,
          answer.kind,
          'its body was written by hand or by a newer version',
        );
      case 'parked':
        throw parkedError(queue, id);
      default:
        throw new WrongStateError(queue, job, answer.kind, ADVICE[answer.kind]);
    }
  }

  /** The stored options of the job with the new time and priority; undefined if these do not change. */
  async function changedOptions() {
    const runnableAt = dueAt ?? (delayMs === undefined ? undefined : Math.floor(engine.now()) + delayMs);
    if (runnableAt === undefined && priority === undefined) return undefined;
    const stored = await engine.admin.get(queue, id);
    if (!stored) throw new JobNotFoundError(queue, id);
    const seen = optionsLineOf(stored.body);
    if (seen === null) return undefined;
    if (priority && queueOptions.limits?.isStrict && decodeBody(stored.body)?.options.group !== undefined)
      throw new InvalidOptionError('update().changes.priority', NO_PRIORITY_IN_STRICT_ORDER, priority);
    const change = {
      ...(runnableAt !== undefined && { runnableAt }),
      ...(priority !== undefined && { priority }),
    };
    return { seen, changed: changeOptions(seen, change) };
  }
}

/** A job of `keepLast` starts after the job that has its key, never beside it. */
export function parkedError(queue: string, id: string): WrongStateError {
  const state = 'waiting for the end of the job that has its unique key';
  return new WrongStateError(queue, `job ${quoted(id)}`, state, 'cancel that job to start this one sooner');
}

const ADVICE = {
  active: 'its handler can call job.update()',
  completed: 'add a new job',
  cancelled: 'add a new job',
  dead: 'use queue.dead.retry(id, { data })',
} as const;

const ONLY_ENDED = 'only a job that has ended is run again';

const AGAIN = { on: 'again', forMs: 0, states: [], delayMs: 0, longestMs: 0 } as const;

/**
 * Adds a completed or cancelled job again, with its id. The store replaces the ended job in the same step, so only one of several
 * calls adds it. Returns `'dead'` if the job is dead; then nothing was done.
 *
 * @throws {JobNotFoundError | WrongStateError | DuplicateJobError | InvalidJobIdError}
 */
export async function addAgain(
  engine: QueueEngine,
  queue: ResolvedQueueOptions,
  id: string,
  add: (job: MadeJob) => Promise<AddResult>,
): Promise<'added' | 'dead'> {
  const { name } = queue;
  const stored = await engine.admin.get(name, checkJobId(id));
  if (!stored) throw new JobNotFoundError(name, id);
  if (stored.state === 'dead') return 'dead';
  if (stored.state !== 'completed' && stored.state !== 'cancelled')
    throw new WrongStateError(name, `job ${quoted(id)}`, stored.state, ONLY_ENDED);
  const body = decodeBody(stored.body);
  if (!body) throw new WrongStateError(name, `job ${quoted(id)}`, 'corrupt', 'add it again by queue.add()');
  const { priority, group, digest, isUnique } = body.options;
  const {
    duplicate,
    state,
    id: holder,
  } = await add({
    id,
    name: body.name,
    body: bodyAgain(stored.body, engine.now()),
    hasOwnId: true,
    replication: queue.durability,
    ...(priority && { priority }),
    ...(group !== undefined && { group }),
    ...(isUnique && { unique: { ...AGAIN, digest: digest! } }),
  });
  if (!duplicate) return 'added';
  if (holder !== id) throw new DuplicateJobError(name, holder, state, WAIT_OR_REMOVE);
  // A caller of `addAndWait` still needs the stored result.
  const advice =
    state === 'completed'
      ? 'a caller of addAndWait may still read its result; try again in 10 s'
      : ONLY_ENDED;
  throw new WrongStateError(name, `job ${quoted(id)}`, state!, advice);
}
