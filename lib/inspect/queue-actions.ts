import type { ActionsCall, StoredAction } from '../contract/action-verbs.js';
import { checkActor } from '../contract/recorded.js';
import { InvalidOptionError } from '../errors.js';
import { checkQueueName } from '../job/job-id.js';
import { field, integer, refuse, rule, shape } from '../options/check.js';

/** Options of `QueueInspector.actions`. */
export interface ActionsOptions {
  /** Only actions in this queue. @default all */
  readonly queue?: string;
  /** Only actions of this person or program. @default all */
  readonly actor?: string;
  /** Actions per page, 1 to 1,000. @default 100 */
  readonly limit?: number;
  /** The cursor of the page before. @default from the newest */
  readonly cursor?: string;
}

/** Something that a person or program did, or tried to do. */
export interface QueueAction {
  /** When it ended, or started, by the clock of Redis. */
  readonly at: Date;
  /** Who did it: the actor of `queue.as` or of `createInspector`. */
  readonly actor: string;
  /** What was done: `job.retry`, `queue.pause`, `schedule.run`, … */
  readonly action: string;
  /** Name of the queue; null for orders to a process that are about all its queues. */
  readonly queue: string | null;
  /** Id of the job or schedule, name of the group, or the filter as JSON. Empty for the whole queue. */
  readonly target: string;
  /** How many jobs or other things it changed. Null at its start, and if it failed. */
  readonly count: number | null;
  /**
   * `'ok'`; `'started'` for an action by a filter, which is recorded again at its end; otherwise the code of the error, such as
   * `'GODWIT_JOB_NOT_FOUND'`.
   */
  readonly result: string;
}

/** A page of actions. */
export interface ActionPage {
  /** The newest first. */
  readonly actions: readonly QueueAction[];
  /** Cursor of the next page; null on the last. */
  readonly cursor: string | null;
}

const readOptions = shape({
  queue: field(
    'queue',
    rule((name: unknown) => checkQueueName(name)),
  ),
  actor: field('actor', rule(checkActor)),
  limit: field('limit', integer(1, 1_000)),
  cursor: field('cursor', rule(checkCursor)),
});

/** @throws {InvalidOptionError | InvalidQueueNameError} */
export function readActionsCall(options: unknown): ActionsCall {
  const { limit = 100, cursor = null, ...match } = readOptions(options, 'actions()', refuse)!;
  return { ...match, limit, before: cursor };
}

export function toAction({ id: _, at, ...action }: StoredAction): QueueAction {
  return { at: new Date(at), ...action };
}

function checkCursor(value: unknown, path: string): string {
  if (typeof value === 'string' && /^\d{1,15}-\d{1,15}$/.test(value)) return value;
  throw new InvalidOptionError(path, 'the cursor of a previous page', value);
}
