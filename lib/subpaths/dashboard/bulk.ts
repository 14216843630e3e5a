import { misspeltField } from '../../job/fields.js';
import { quoted } from '../../job/text.js';
import type { BulkActRecord } from '../../contract/bulk-act-verbs.js';
import type { BulkActHost, BulkActOptions, BulkActs } from '../../producer/bulk-act-runs.js';
import { priorityText, workersAt } from '../../producer/job-list.js';
import type { Queue } from '../../producer/queue.js';
import { filterText } from '../../producer/recorded-queue.js';
import { actionOf, actOnMany, checkState, readIds, readKind } from './acts.js';
import { queueOf, visible, type Act, type ApiCall, type ApiParts, type Route } from './call.js';
import { HttpFault } from './http.js';
import { matchOf, readChoice, type MoreFilter } from './job-search.js';
import { BulkActNotFoundError, InvalidOptionError } from '../../errors.js';
import { refuse } from '../../options/check.js';
import type { DashboardAction } from './rights.js';
import type { BulkActView } from './views.js';

/** Acts on many jobs: in the background, or a page of them in one call. */

/** A search by a field of the data reveals its value, so it needs the right to see data, and the field must not be hidden. */
export async function allowSearch(
  call: ApiCall,
  parts: ApiParts,
  queue: string,
  where: unknown,
): Promise<void> {
  if (typeof where !== 'string') return;
  await call.require('read-data', { queue });
  const field = fieldOf(where);
  if (!parts.redactor.hides(field)) return;
  throw new HttpFault(403, 'FORBIDDEN', `field ${quoted(field)} is hidden here, so it cannot be searched`);
}

/** The field in `tenant.id=7`. */
function fieldOf(where: string): string {
  return where.split('=', 1)[0]!;
}

/** Refuses fields that are not read. Without this, an act with a `rate` that is not read changes all jobs at once. */
function checkFields(body: ApiCall['body'], own: readonly string[]): void {
  const known = ['kind', ...own, 'reason'];
  const unknown = Object.keys(body).find((name) => !known.includes(name));
  if (unknown !== undefined) throw misspeltField('body', unknown, known);
}

/** Acts on the named jobs, or on a page of those that match. */
export const actOnPage: Route = async (call, parts) => {
  const queue = await queueOf(call, parts);
  const { ids } = call.body;
  checkFields(call.body, ids === undefined ? ['filter', 'cursor', 'before', 'limit'] : ['ids']);
  return perform(call, parts, queue, () => actOnMany(parts.engine, queue, call.body, parts.redactor));
};

/** Starts an act on all jobs that match. This process works on it. */
export const startBulkAct: Route = async (call, parts) => {
  const queue = await queueOf(call, parts);
  const { ids } = call.body;
  // `perform` asks for the right of each named job instead of `bulk`, and records their ids.
  if (ids !== undefined)
    throw new InvalidOptionError('ids', 'left out: an act in the background takes a filter', ids);
  checkFields(call.body, ['filter', 'rate']);
  return perform(call, parts, queue, async (actor) => {
    const { filter, rate, reason } = call.body;
    const kind = readKind(call.body['kind'], 'kind', refuse)!;
    const {
      state,
      name,
      contains,
      where,
      group,
      reason: diedOf,
      error,
      errorText,
      priority,
      worker,
      ...ages
    } = readChoice(filter, null, 1);
    checkState(kind, state);
    const { hidesText } = parts.redactor;
    const more: MoreFilter = defined({
      group,
      error,
      errorText,
      contains: hidesText ? contains : undefined,
      priority: priority && priorityText(priority),
      workers: worker && workersAt(await parts.engine.processes.list(), worker).join(' '),
    });
    const { id } = await actsOf(queue, parts, actor).begin(
      kind,
      defined({
        state,
        name,
        contains: hidesText ? undefined : contains,
        where,
        reason: diedOf,
        olderThan: ages.olderThanMs,
        newerThan: ages.newerThanMs,
      }),
      // `begin` checks them.
      defined({ rate, reason: reason === '' ? undefined : reason }) as BulkActOptions,
      Object.keys(more).length === 0 ? null : (more as BulkActRecord['more']),
    );
    return { id, isStarted: true };
  });
};

/** The acts in the queues that this person may see. */
export const listBulkActs: Route = async (call, parts): Promise<BulkActView[]> => {
  const names = new Set(await visible(call, parts));
  const acts = (await parts.inspector.bulkActs()).filter(({ queue }) => names.has(queue));
  const rights = new Map<string, readonly DashboardAction[]>();
  for (const queue of new Set(acts.map((act) => act.queue)))
    rights.set(queue, await call.rightsOf({ queue }));
  return acts.map(({ filter, reason: _, startedAt, updatedAt, error, ...act }) => ({
    ...act,
    filter: parts.redactor.text(filterText(filter)),
    error: error && parts.redactor.text(error),
    startedAt: startedAt.getTime(),
    updatedAt: updatedAt.getTime(),
    canControl: needsOf(act.kind, act.queue).every(([right]) => rights.get(act.queue)!.includes(right)),
  }));
};

export const stopBulkAct: Route = control('bulk.stop', (acts, id) => acts.stop(id));
export const resumeBulkAct: Route = control('bulk.resume', (acts, id) => acts.resume(id));

/** An order to one act, with the rights that its start needs. */
function control(action: string, order: (acts: BulkActs, id: string) => Promise<void>): Route {
  return async (call, parts) => {
    const queue = await queueOf(call, parts);
    const { name } = queue;
    const { id } = call.params;
    const act = await queue.bulkActs.get(id!);
    if (!act) throw new BulkActNotFoundError(name, id!);
    return call.perform(
      { needs: needsOf(act.kind, name), action, queue: name, target: id! },
      async (actor) => {
        await order(actsOf(queue, parts, actor), id!);
        return { done: 1 };
      },
    );
  };
}

/** The rights for an act of this kind in a queue. */
function needsOf(kind: unknown, queue: string) {
  return [
    ['bulk', { queue }],
    [actionOf(kind), { queue }],
  ] as const;
}

function actsOf(queue: Queue, { redactor }: ApiParts, actor: string): BulkActs {
  const host: BulkActHost = { actor, matchOf: (more) => matchOf(more, redactor) };
  return queue.bulkActs.for(host);
}

/** Checks the rights for an act on many jobs and records it. */
function perform<T>(
  call: ApiCall,
  parts: ApiParts,
  { name: queue }: Queue,
  run: (actor: string) => Promise<T>,
): Promise<T> {
  const { kind, filter, ids } = call.body;
  const where = (filter as { readonly where?: unknown } | null | undefined)?.where;
  // The value in `where` is data of jobs, so only its field is recorded.
  const isNamed = ids !== undefined;
  const needs: Act['needs'] = isNamed
    ? readIds(ids).map((jobId) => [actionOf(kind), { queue, jobId }])
    : needsOf(kind, queue);
  const target =
    !isNamed && filter
      ? filterText({ ...filter, where: typeof where === 'string' ? { [fieldOf(where)]: '' } : undefined })
      : (JSON.stringify(ids) ?? '');
  return call.perform({ needs, action: actionOf(kind), queue, target }, async (actor) => {
    await allowSearch(call, parts, queue, where);
    return run(actor);
  });
}

/** The fields that are given. */
function defined<T extends object>(fields: T): { [Field in keyof T]?: NonNullable<T[Field]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
