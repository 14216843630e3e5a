import { checkActor, type ActionsCall, type QueueAction, type StoredAction } from '../contract/actions.js';
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
