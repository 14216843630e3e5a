import { checkJobName } from '../../job/job-id.js';
import { limitText, nameOf } from '../../producer/recorded-queue.js';
import type { QueueLimitChange } from '../../options/limit-changes.js';
import type { Queue } from '../../producer/queue.js';
import { stopsJobs, type LimitInfo } from '../../producer/limit-info.js';
import { queueOf, type Act, type ApiCall, type ApiParts, type Route } from './call.js';
import { HttpFault } from './http.js';

/** Changes of limits at run time. A body has the fields of `QueueLimits.set` or `QueueGroup.set`, which check them. */

/** Changes the limit of the queue, or of a `name`. */
export const setLimit: Route = async (call, parts) => {
  const queue = await queueOf(call, parts);
  const { name, ...change } = call.body;
  const of = targetOf(name);
  return edit(call, queue, 'limit.set', limitText(change, of), () =>
    queue.limits.set(change as QueueLimitChange, of),
  );
};

/** Clears what was set for the queue or a `name`: the limits of the code apply again. */
export const clearLimit: Route = async (call, parts) => {
  const queue = await queueOf(call, parts);
  const of = targetOf(call.body['name']);
  return edit(call, queue, 'limit.clear', nameOf(of), () => queue.limits.clear(of));
};

/**
 * Ends a hold of the queue, of a `name` or of a limit that it shares with other queues (`shared`), and closes its circuit breaker. A
 * shared limit needs the right for each queue that uses it.
 */
export const releaseLimit: Route = async (call, parts) => {
  const queue = await queueOf(call, parts);
  const { shared } = call.body;
  if (shared !== undefined && shared !== null) return releaseShared(call, parts, queue, shared);
  const of = targetOf(call.body['name']);
  const needs = releaseNeeds([queue.name]);
  return edit(call, queue, 'limit.release', nameOf(of), () => queue.limits.release(of), needs);
};

async function releaseShared(call: ApiCall, parts: ApiParts, queue: Queue, given: unknown) {
  const name = typeof given === 'string' ? given : '';
  const users = await usersOfShared(parts, queue.name, name);
  if (!users.includes(queue.name))
    throw new HttpFault(404, 'NO_SUCH_LIMIT', `queue '${queue.name}' uses no shared limit '${name}'`);
  const release = () => queue.limits.shared(name).release();
  return edit(call, queue, 'limit.release', `shared ${name}`, release, releaseNeeds(users));
}

/** Names of the shared limits among these that stop jobs now and that this person may release. */
export async function releasableOf(
  call: ApiCall,
  parts: ApiParts,
  queue: string,
  limits: readonly LimitInfo[],
): Promise<string[]> {
  const names = limits.filter((one) => one.of === 'shared' && stopsJobs(one)).map(({ name }) => name!);
  const mayRelease = async (name: string) => {
    const users = await usersOfShared(parts, queue, name);
    const rights = await Promise.all(users.map((one) => call.rightsOf({ queue: one })));
    return rights.every((its) => its.includes('queue.pause'));
  };
  const allowed = await Promise.all(names.map(mayRelease));
  return names.filter((_, at) => allowed[at]);
}

/** The queues whose workers use a shared limit now, and those whose options name it. */
async function usersOfShared(parts: ApiParts, queue: string, name: string): Promise<string[]> {
  const [all, shared] = await Promise.all([parts.queues(), parts.engine.limits.shared(queue)]);
  const users = shared.find(({ field }) => field === `s:${name}`)?.users ?? [];
  return [...new Set([...users, ...all.filter((one) => parts.optionsOf(one).uses?.includes(name))])];
}

function releaseNeeds(queues: readonly string[]): Act['needs'] {
  return queues.map((queue) => ['queue.pause', { queue }] as const);
}

export const setGroup: Route = async (call, parts) => {
  const queue = await queueOf(call, parts);
  const { id = '' } = call.params;
  return edit(call, queue, 'group.set', `${id} ${limitText(call.body, {})}`, () =>
    queue.group(id).set(call.body),
  );
};

export const clearGroup: Route = async (call, parts) => {
  const queue = await queueOf(call, parts);
  const { id = '' } = call.params;
  const group = queue.group(id);
  const { paused } = await group.state();
  const needs = needsOf(queue.name, paused);
  return edit(call, queue, 'group.clear', id, () => group.clear(), needs);
};

function targetOf(name: unknown): { readonly name?: string } {
  return name === undefined || name === null ? {} : { name: checkJobName(name) };
}

/** The rights for a change of a limit. A group is paused by a limit too. */
function needsOf(queue: string, pauses: boolean): Act['needs'] {
  return [['limit.edit', { queue }], ...(pauses ? [['queue.pause', { queue }] as const] : [])];
}

function edit(
  { perform, body }: ApiCall,
  { name: queue }: Queue,
  action: string,
  target: string,
  run: () => Promise<unknown>,
  needs: Act['needs'] = needsOf(queue, body['paused'] !== undefined),
): Promise<{ readonly done: 1 }> {
  return perform({ needs, action, queue, target }, async () => {
    await run();
    return { done: 1 };
  });
}
