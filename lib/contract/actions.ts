import { GodwitError, InvalidOptionError, RedisUnavailableError } from '../errors.js';
import { withoutEffect } from '../errors/thrown.js';
import { faultOfText, quoted } from '../job/text.js';

/** The record of what people did, for all queues of a prefix. No job needs these verbs to run. */
export interface ActionVerbs {
  /** Stores an action with the time of the store. About the last `RULES.actionsMax` are kept. */
  record(action: NewAction): Promise<void>;
  /** Stored actions, the newest first. */
  list(call: ActionsCall): Promise<ActionsAnswer>;
}

/** Something that a person or program did, or tried to do. */
export interface QueueAction {
  /** When it ended, or started, by the clock of Redis. */
  readonly at: Date;
  /** The actor: that of `queue.as`, `createInspector` or the dashboard; `cli:<user>@<host>` for the command `godwit`. */
  readonly actor: string;
  /** The action: `job.retry`, `queue.pause`, `schedule.run`, … */
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

/** An action before it is stored. It never contains data of jobs. The store adds the time. */
export type NewAction = Omit<QueueAction, 'at'>;

export interface StoredAction extends NewAction {
  /** Rises with time; unique in its store. */
  readonly id: string;
  /** Ms since 1970 by the clock of the store. */
  readonly at: number;
}

export interface ActionsCall {
  /** Only those before the action with this id. Null: from the newest. */
  readonly before: string | null;
  readonly limit: number;
  readonly queue?: string | undefined;
  readonly actor?: string | undefined;
}

export interface ActionsAnswer {
  readonly actions: readonly StoredAction[];
  /** `before` of the next page; null if there is none. */
  readonly next: string | null;
}

/** Longest texts of an action, in characters. Longer ones are cut. */
const ACTOR_LENGTH = 256;
export const TARGET_LENGTH = 500;

/** Compares ids as numbers: `<ms>-<sequence>`. Positive if the first is later. */
export function compareActionIds(a: string, b: string): number {
  const [aMs = 0, aAt = 0] = a.split('-').map(Number);
  const [bMs = 0, bAt = 0] = b.split('-').map(Number);
  return aMs - bMs || aAt - bAt;
}

/** An id or a name as a target. One that looks like a filter becomes a list of it, or a reader would take it for a filter. */
export function idText<Id>(id: Id): Id | string {
  return typeof id === 'string' && /^\[|\}$/.test(id) ? JSON.stringify([id]) : id;
}

type Args = readonly any[];

/** Which part of a call of one method is recorded. It must never contain data of jobs. */
export interface RecordedMethod {
  /** The kind of action, such as `job.retry`. */
  readonly action: string;
  /** The id, name or filter, from the arguments, which may be wrong. @default none */
  readonly target?: (args: Args) => unknown;
  /** The id, if only the answer has it. */
  readonly idOf?: (answer: any) => unknown;
  /** For a call whose answer does not name the job that it adds: the arguments with a callback that gets the job. */
  readonly withCallback?: (args: Args, onAdded: (added: unknown) => void) => Args;
  /** How many it changed. @default 1; the answer, if it is a number; 0, if it is false */
  readonly count?: (answer: any) => number;
  /** The queue, from the arguments. @default the queue of the handle */
  readonly queue?: (args: Args) => unknown;
  /** Whether the call may change many jobs over some time. Then its start is recorded too. */
  readonly isLong?: (args: Args) => boolean;
}

/** Methods by name. All other methods of the handle only read. */
export type RecordedMethods = Readonly<Record<string, RecordedMethod>>;

/**
 * A handle that records who called these methods, after the call has ended. The call itself is made on `base`, so calls that it
 * makes on itself are not recorded again.
 *
 * @param prefix what precedes the target, such as the name of a group.
 */
export function recorded<Handle extends object>(
  base: Handle,
  methods: RecordedMethods,
  { actions, actor, queue, prefix = '' }: Recorder & { readonly prefix?: string },
): Handle {
  const handle = Object.create(base) as Handle;
  const calls = base as Readonly<Record<string, (...args: Args) => unknown>>;
  for (const [name, method] of Object.entries(methods)) {
    const { action, target, idOf, count = countOf, withCallback, isLong } = method;
    const value = async (...args: Args): Promise<unknown> => {
      const given = textOf(() => target?.(args));
      const of = method.queue ? textOf(() => method.queue!(args)) || null : queue;
      const what = { actor, action, queue: of, target: [prefix, given].filter(Boolean).join(' ') };
      if (isLong?.(args)) await recordAction(actions, { ...what, count: null, result: 'started' });
      // The added job, or else the answer.
      let outcome: unknown;
      const all = withCallback ? withCallback(args, (job) => (outcome = job)) : args;
      // A call may have added a job although it fails later.
      const withId = () => ({ ...what, target: textOf(() => idOf?.(outcome)) || what.target });
      let answer: unknown;
      try {
        answer = await calls[name]!(...all);
      } catch (error) {
        // The job was added. That its run failed, or that the wait is over, is not the result of the add.
        const isAdded = withCallback !== undefined && outcome !== undefined;
        const end = isAdded
          ? { count: count(outcome), result: 'ok' }
          : { count: null, result: resultOf(error) };
        const failed = { ...withId(), ...end };
        await recordAction(actions, failed, (error as { applied?: unknown } | null)?.applied === 'no');
        throw error;
      }
      if (!withCallback) outcome = answer;
      await recordAction(actions, { ...withId(), count: count(outcome), result: 'ok' });
      return answer;
    };
    Object.defineProperty(handle, name, { value });
  }
  return handle;
}

/** Where actions are recorded, and of whom. */
export interface Recorder {
  readonly actions: ActionVerbs;
  readonly actor: string;
  /** Null: the calls are not about one queue. */
  readonly queue: string | null;
}

/**
 * Never rejects: the action was done. An entry that cannot be stored is logged.
 *
 * @param isUndone the action changed nothing, and its caller gets the error. Then a second message would say nothing new.
 */
export async function recordAction(actions: ActionVerbs, action: NewAction, isUndone = false): Promise<void> {
  const cut = {
    ...action,
    actor: action.actor.slice(0, ACTOR_LENGTH),
    target: action.target.slice(0, TARGET_LENGTH),
  };
  try {
    await actions.record(cut);
  } catch (error) {
    if (isUndone) return;
    const { actor, action: what, queue, target, result } = cut;
    // Loaded only here, so that a producer without actors does not load it.
    const { Log } = await import('./log.js');
    new Log('QueueActions').warn(
      `an action could not be recorded: ${quoted(actor)} did ${what} in queue '${queue ?? ''}'${target && `: ${target}`} ` +
        `(${result}): ${reasonOf(error as Error)}`,
    );
  }
}

/** That nothing was changed is true of the record only. */
function reasonOf(error: Error): string {
  return error instanceof RedisUnavailableError ? withoutEffect(error) : error.message;
}

/** The result of an action that failed. */
export function resultOf(error: unknown): string {
  return error instanceof GodwitError ? error.code : 'error';
}

/** @throws {InvalidOptionError} */
export function checkActor(actor: unknown, path: string): string {
  if (faultOfText(actor, ACTOR_LENGTH) === undefined) return actor as string;
  const expected = `1 to ${ACTOR_LENGTH} bytes of well-formed text without control characters`;
  throw new InvalidOptionError(path, expected, actor);
}

function countOf(answer: unknown): number {
  return typeof answer === 'number' ? answer : answer === false ? 0 : 1;
}

/** A getter or a revoked proxy may throw; then the call itself refuses its arguments. */
function textOf(read: () => unknown): string {
  try {
    const text = read();
    return typeof text === 'string' ? text : '';
  } catch {
    return '';
  }
}
