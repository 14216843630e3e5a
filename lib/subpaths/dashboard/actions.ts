import type { QueueAction } from '../../contract/actions.js';
import { checkQueueName } from '../../job/job-id.js';
import { visible, type ApiCall, type ApiParts, type Route } from './call.js';
import { noQueue } from './http.js';
import { wholeNumber } from './job-search.js';
import type { ActionsView } from './views.js';

const MAX_ACTIONS = 200;
/** Pages of the record that one call reads, if this person may see few of the actions. */
const MAX_PAGES = 20;

/** The actions in the queues whose record this person may see. */
export const listActions: Route = async (call, parts): Promise<ActionsView> => {
  const { limit: given = '100', ...match } = call.query;
  const limit = wholeNumber('limit', MAX_ACTIONS)(given);
  const mayRead = rightOf(call, parts);
  const { queue } = match;
  if (queue !== undefined && !(await mayRead(checkQueueName(queue)))) throw noQueue(queue);
  const names = await visible(call, parts);
  if (!(await Promise.all(names.map(mayRead))).includes(true)) await call.require('read-actions');
  const found: QueueAction[] = [];
  let cursor: string | null = match['cursor'] ?? null;
  let pages = 0;
  do {
    const page = { ...match, limit: limit - found.length, ...(cursor !== null && { cursor }) };
    const read = await parts.inspector.actions(page);
    const seen = await Promise.all(read.actions.map((one) => mayRead(one.queue)));
    found.push(...read.actions.filter((_, at) => seen[at]));
    ({ cursor } = read);
    pages += 1;
  } while (cursor !== null && found.length < limit && pages < MAX_PAGES);
  const actions = found.map(({ at, target, ...one }) => ({
    ...one,
    at: at.getTime(),
    target: parts.redactor.text(target),
  }));
  return { now: parts.engine.now(), actions, cursor };
};

/** Whether this person may see actions of a queue, even of one that was deleted; of null: of a whole process. */
function rightOf(call: ApiCall, { shows }: ApiParts): (queue: string | null) => Promise<boolean> {
  const known = new Map<string | null, Promise<boolean>>();
  const ask = async (queue: string | null): Promise<boolean> => {
    if (queue !== null && !shows(queue)) return false;
    const rights = await call.rightsOf(queue === null ? {} : { queue });
    return rights.includes('read') && rights.includes('read-actions');
  };
  return (queue) => {
    const there = known.get(queue) ?? ask(queue);
    known.set(queue, there);
    return there;
  };
}
