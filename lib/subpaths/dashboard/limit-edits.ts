import { checkJobName } from '../../job/job-id.js';
import { limitText, nameOf } from '../../producer/recorded-queue.js';
import type { QueueLimitChange } from '../../options/limit-changes.js';
import type { Queue } from '../../producer/queue.js';
import { queueOf, type Act, type ApiCall, type Route } from './call.js';

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

/** Ends a hold of the queue or of a `name`, and closes its circuit breaker. */
export const releaseLimit: Route = async (call, parts) => {
  const queue = await queueOf(call, parts);
  const of = targetOf(call.body['name']);
  const needs: Act['needs'] = [['queue.pause', { queue: queue.name }]];
  return edit(call, queue, 'limit.release', nameOf(of), () => queue.limits.release(of), needs);
};

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
