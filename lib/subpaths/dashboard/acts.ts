import { BULK_KINDS, BULK_STATES, type BulkKind } from '../../contract/bulk-act-verbs.js';
import type { QueueEngine } from '../../contract/engine.js';
import { inSteps } from '../../contract/retry.js';
import {
  InvalidOptionError,
  JobNotFoundError,
  PayloadTooLargeError,
  QueueFullError,
  WrongStateError,
} from '../../errors.js';
import { checkGiven, type AnyDefinition } from '../../job/define-job.js';
import { checkJobId, checkJobName } from '../../job/job-id.js';
import { dataTextOf, decodeBody } from '../../job/job-record.js';
import { JsonText } from '../../job/payload.js';
import { RULES } from '../../job/rules.js';
import { quoted } from '../../job/text.js';
import { duration, field, integer, oneOf, refuse, rule, shape } from '../../options/check.js';
import { checkGroup } from '../../options/limit-options.js';
import { actOf, checkCancelReason, type Act } from '../../producer/bulk-acts.js';
import { keptOut } from '../../producer/dead-jobs.js';
import type { AddResult, Queue } from '../../producer/queue.js';
import { changeExact, parseExact, printExact, type JsonNode } from './exact-json.js';
import { HttpFault } from './http.js';
import { findJobs, readChoice, timeOf } from './job-search.js';
import type { ApiCall, ApiParts } from './call.js';
import type { Redactor } from './redaction.js';
import type { DashboardAction } from './rights.js';
import type { BulkView } from './views.js';

/** Changes of jobs with edited data, and acts on many jobs at once. */

/** How many jobs one call acts on. The page calls again with the cursor. */
const BULK = 500;
const AT_ONCE = 100;

export const readKind = oneOf(...BULK_KINDS);

/** The right that a bulk act needs in addition to `bulk`. */
export function actionOf(kind: unknown): DashboardAction {
  return `job.${readKind(kind, 'kind', refuse)!}`;
}

/** Acts on the named jobs, or on a bounded number of jobs that match. */
export async function actOnMany(
  engine: QueueEngine,
  queue: Queue,
  body: Readonly<Record<string, unknown>>,
  redactor: Redactor,
): Promise<BulkView> {
  const kind = readKind(body['kind'], 'kind', refuse)!;
  const reason = typeof body['reason'] === 'string' && body['reason'] !== '' ? body['reason'] : undefined;
  const before =
    body['before'] === undefined
      ? Math.floor(engine.now())
      : integer(0, Number.MAX_SAFE_INTEGER)(body['before'], 'before', refuse)!;
  const act = actOf(
    engine,
    queue.name,
    kind,
    kind === 'cancel' ? checkCancelReason(reason, 'cancel().reason') : undefined,
  );
  if (body['ids'] !== undefined) {
    const ids = readIds(body['ids']);
    return { done: await inGroups(ids, act), examined: ids.length, cursor: null, before };
  }
  const limit = body['limit'] === undefined ? BULK : integer(1, BULK)(body['limit'], 'limit', refuse)!;
  const search = readChoice(body['filter'], body['cursor'], limit);
  checkState(kind, search.state);
  const { jobs, cursor, examined } = await findJobs(engine, queue.name, search, redactor);
  // The person did not see jobs that were added later, or died again.
  const ids = jobs.filter((job) => (timeOf(job) ?? 0) <= before).map(({ id }) => id);
  const until = search.state === 'dead' ? before : undefined;
  return { done: await inGroups(ids, act, until), examined, cursor, before };
}

export function checkState(kind: BulkKind, state: string): void {
  const states: readonly string[] = BULK_STATES[kind];
  if (!states.includes(state))
    throw new InvalidOptionError('filter.state', `one of ${states.join(', ')} to ${kind} jobs`, state);
}

export function readIds(value: unknown): string[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= BULK)
    return value.map((id) => checkJobId(id));
  throw new InvalidOptionError('ids', `a list of 1 to ${BULK} ids`, value);
}

function inGroups(ids: readonly string[], act: Act, until?: number): Promise<number> {
  let done = 0;
  return inSteps(async (changed) => {
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      done += await act(ids.slice(at, at + AT_ONCE), until);
      changed(done);
    }
    return done;
  });
}

const readNew = shape({
  name: field('name', rule(checkJobName)),
  data: field('json', rule(compactJson)),
  id: field(
    'id',
    rule((id: unknown) => checkJobId(id as string)),
  ),
  delay: field('delay', duration()),
  priority: field('priority', integer(0, RULES.priorityMax)),
  attempts: field('attempts', integer(1, Number.MAX_SAFE_INTEGER)),
  group: field('group', rule(checkGroup)),
  /** A job whose hidden values the data contains. */
  like: field(
    'like',
    rule((id: unknown) => checkJobId(id as string)),
  ),
});

function definitionOf(definitions: readonly AnyDefinition[], queue: string, name: string | undefined) {
  return definitions.find((one) => one.queue === queue && one.name === name);
}

/** Adds a job that a person entered. @throws {InvalidOptionError | QueueFullError} and what `Queue.add` throws */
export async function addJob(
  queue: Queue,
  { optionsOf, engine, redactor, definitions }: ApiParts,
  body: Readonly<Record<string, unknown>>,
): Promise<AddResult> {
  const { name, json: entered = 'null', like, ...options } = readNew(body, 'job', refuse)!;
  const { maxWaiting } = optionsOf(queue.name);
  const stored = like === undefined ? null : await engine.admin.get(queue.name, like);
  if (like !== undefined && !stored) throw new JobNotFoundError(queue.name, like);
  const json = stored ? redactor.restore(entered, dataTextOf(stored.body)) : entered;
  const jobName = checkJobName(name);
  const definition = definitionOf(definitions, queue.name, jobName);
  const added = await queue.add(definition ?? jobName, new JsonText(json), options);
  // A full queue that drops new jobs.
  if (added.dropped) throw new QueueFullError(queue.name, maxWaiting!.limit, maxWaiting!.limit);
  return added;
}

/** JSON that a person wrote, on one line. Numbers keep their digits. */
function compactJson(value: unknown, path: string): string {
  return printExact(treeOf(value, path));
}

function treeOf(value: unknown, path: string): JsonNode {
  const tree = typeof value === 'string' ? parseExact(value) : null;
  if (tree !== null) return tree;
  throw new InvalidOptionError(path, 'JSON that is nested at most 200 deep, as a string', value);
}

/** Schedules keep their data as JavaScript reads it, so numbers that it would round are refused. */
export function checkJsonText(value: unknown, path: string): string {
  changeExact(treeOf(value, path), (node) => {
    if (node.kind === 'number' && !isExact(node.text))
      throw new InvalidOptionError(path, 'without numbers that JavaScript rounds; quote them', node.text);
    return null;
  });
  return value as string;
}

function isExact(text: string): boolean {
  const number = Number(text);
  return Number.isFinite(number) && (!/^-?\d+$/.test(text) || Number.isSafeInteger(number));
}

/**
 * Replaces the data of a job that waits, is delayed or is dead; a dead one is retried with it. Numbers are stored as they were
 * written.
 *
 * @throws {HttpFault} 403 without a right; 409 if the data is not what the person saw
 * @throws {JobNotFoundError | WrongStateError | DuplicateJobError | PayloadTooLargeError | InvalidOptionError}
 */
export async function replaceData(
  { require, body: { data: json, version } }: ApiCall,
  { engine, redactor, optionsOf, definitions }: ApiParts,
  name: string,
  id: string,
): Promise<{ readonly done: 1; readonly retried: boolean }> {
  await require('read-data', { queue: name, jobId: id });
  const { maxPayloadBytes } = optionsOf(name);
  const job = await engine.admin.get(name, checkJobId(id));
  if (!job) throw new JobNotFoundError(name, id);
  if (typeof json !== 'string') throw new InvalidOptionError('data', 'JSON, as a string', json);
  const stored = dataTextOf(job.body);
  const seen = redactor.show(stored)?.version ?? '';
  const changed = 'the data of this job has changed since you opened it; open it again';
  if (version !== seen) throw new HttpFault(409, 'CHANGED', changed);
  const data = redactor.restore(json, stored);
  const bytes = Buffer.byteLength(data);
  if (bytes > maxPayloadBytes) throw new PayloadTooLargeError(bytes, maxPayloadBytes);
  const definition = definitionOf(definitions, name, decodeBody(job.body)?.name);
  if (definition) await checkGiven(definition, JSON.parse(data), data);
  if (job.state === 'dead') {
    await require('job.retry', { queue: name, jobId: id });
    const { retried, refused } = await engine.upkeep.retryDead(name, { ids: [id], data });
    if (retried.length > 0) return { done: 1, retried: true };
    if (refused?.[0]) throw await keptOut(engine, name, refused[0].holder);
    throw new WrongStateError(name, `job ${quoted(id)}`, 'not dead any more', 'open it again');
  }
  const answer = await engine.admin.update(name, { id, data, seenData: stored });
  if (answer.kind === 'updated') return { done: 1, retried: false };
  if (answer.kind === 'changed') throw new HttpFault(409, 'CHANGED', changed);
  if (answer.kind === 'not-found') throw new JobNotFoundError(name, id);
  throw new WrongStateError(
    name,
    `job ${quoted(id)}`,
    answer.kind,
    'only the data of waiting, delayed and dead jobs can be edited',
  );
}

/** Cancels a job. @throws {JobNotFoundError | WrongStateError | InvalidOptionError} */
export async function cancelJob(
  { admin }: Pick<QueueEngine, 'admin'>,
  queue: Queue,
  id: string,
  reason: unknown,
) {
  const outcome = await queue.cancel(id, (reason ?? undefined) as string | undefined);
  if (outcome !== 'not-found') return { outcome };
  // It may have ended since the person saw it.
  const job = await admin.get(queue.name, id, true);
  if (job === null) throw new JobNotFoundError(queue.name, id);
  throw new WrongStateError(
    queue.name,
    `job ${quoted(id)}`,
    job.state,
    'a job that has ended stays as it is',
  );
}

const readPlace = shape({
  delay: field('delay', duration()),
  priority: field('priority', integer(0, RULES.priorityMax)),
});

/** Changes when a job starts: its time, or its priority. @throws what `Queue.update` throws */
export async function moveJob(queue: Queue, id: string, body: Readonly<Record<string, unknown>>) {
  return queue.update(id, readPlace(body, 'job', refuse)!);
}
