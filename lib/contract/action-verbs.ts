/** The record of what people did, for all queues of a prefix. No job needs these verbs to run. */
export interface ActionVerbs {
  /** Stores an action with the time of the store. About the last `RULES.actionsMax` are kept. */
  record(action: NewAction): Promise<void>;
  /** Stored actions, the newest first. */
  list(call: ActionsCall): Promise<ActionsAnswer>;
}

/** Something that a person or program did, or tried to do. It never contains data of jobs. */
export interface NewAction {
  readonly actor: string;
  /** `job.retry`, `queue.pause`, … */
  readonly action: string;
  /** Null for an action on all queues of a process. */
  readonly queue: string | null;
  /** Id, name, or filter as JSON. Empty: the whole queue. */
  readonly target: string;
  /** How many jobs or other things it changed. Null if that is not known. */
  readonly count: number | null;
  /** `ok`; `started` for one that ends later; otherwise the code of the error. */
  readonly result: string;
}

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
export const ACTOR_LENGTH = 256;
export const TARGET_LENGTH = 500;

/** Compares ids as numbers: `<ms>-<sequence>`. Positive if the first is later. */
export function compareActionIds(a: string, b: string): number {
  const [aMs = 0, aAt = 0] = a.split('-').map(Number);
  const [bMs = 0, bAt = 0] = b.split('-').map(Number);
  return aMs - bMs || aAt - bAt;
}
