import { recordAction, TARGET_LENGTH, type NewAction, type QueueAction } from '../../contract/actions.js';
import type { QueueEngine } from '../../contract/engine.js';
import type { Log } from '../../contract/log.js';
import { checkQueueName } from '../../job/job-id.js';
import { quoted } from '../../job/text.js';
import { visible, type ApiCall, type ApiParts, type Route } from './call.js';
import { faultOf, noQueue } from './http.js';
import { wholeNumber } from './job-search.js';
import type { ActionsView } from './views.js';

/** Failed actions of one person that are recorded in a minute. Otherwise refusals could displace what was done. */
const FAILURES_PER_MINUTE = 30;
const MINUTE_MS = 60_000;
const MAX_ACTIONS = 200;
/** Pages of the record that one call reads, if this person may see few of the actions. */
const MAX_PAGES = 20;

/** Records what people do on the dashboard, and what they are refused. */
export class ActionLog {
  private readonly failures = new Map<string, number>();
  private minute = 0;

  constructor(
    private readonly engine: Pick<QueueEngine, 'actions' | 'now'>,
    private readonly onAction: ((action: QueueAction) => void) | undefined,
    private readonly logger: Log,
  ) {}

  /** Runs the action and records its end. */
  async perform<T>(
    given: Pick<NewAction, 'action' | 'queue' | 'target'>,
    actorOf: () => string,
    run: () => Promise<T>,
  ): Promise<T> {
    let answer: T;
    try {
      answer = await run();
    } catch (error) {
      const { code } = faultOf(error) ?? { code: 'error' };
      const actor = actorOf();
      if (!this.hasTooMany(actor)) await this.record({ ...given, actor, count: null, result: code });
      throw error;
    }
    const actor = actorOf();
    const count = countOf(answer as Counted);
    const what = { ...given, target: given.target || ((answer as Counted)?.id ?? '') };
    if ((answer as Counted)?.isStarted) await this.record({ ...what, actor, count: null, result: 'started' });
    else if (count !== null) await this.record({ ...what, actor, count, result: 'ok' });
    return answer;
  }

  private async record(given: NewAction): Promise<void> {
    const action = { ...given, target: given.target.slice(0, TARGET_LENGTH) };
    await recordAction(this.engine.actions, action);
    const { onAction } = this;
    if (onAction)
      this.logger.guard('onAction', () => onAction({ at: new Date(this.engine.now()), ...action }));
    else this.logger.log(lineOf(action));
  }

  private hasTooMany(actor: string): boolean {
    const minute = Math.floor(performance.now() / MINUTE_MS);
    if (minute !== this.minute) this.failures.clear();
    this.minute = minute;
    const count = (this.failures.get(actor) ?? 0) + 1;
    this.failures.set(actor, count);
    return count > FAILURES_PER_MINUTE;
  }
}

function lineOf({ actor, action, queue, target, count, result }: NewAction): string {
  const who = quoted(actor);
  const what = `${action} in queue '${queue}'${target && `: ${target}`}`;
  if (result === 'started') return `${who} started ${what}`;
  if (result !== 'ok') return `${who} failed to do ${what} (${result})`;
  return `${who} did ${what}${count === 1 ? '' : `, ${count} changed`}`;
}

/** The fields of API answers from which the number of changed things is read. */
type Counted =
  | {
      /** It continues in the background. */
      readonly isStarted?: boolean;
      /** Id of a job that was added without one. */
      readonly id?: string;
      readonly done?: number;
      readonly examined?: number;
      readonly changed?: boolean;
      readonly removed?: boolean;
      readonly duplicate?: boolean;
      readonly report?: { readonly repairs?: readonly unknown[] };
    }
  | undefined;

/** Null if a step of an action on many jobs has changed none. */
function countOf(answer: Counted): number | null {
  const { done, examined, changed, removed, duplicate, report } = answer ?? {};
  if (done !== undefined) return done === 0 && examined !== undefined ? null : done;
  if (changed === false || removed === false || duplicate === true) return 0;
  return report?.repairs?.length ?? 1;
}

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
