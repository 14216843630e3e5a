/**
 * Queues that other programs use with plain commands: a task waits in a sorted set (`ZADD delayed due task`) until it is due,
 * then in a list (`BLPOP ready`). Tasks are bytes that Godwit does not read.
 */
export interface TaskVerbs {
  /**
   * Moves due tasks to the end of the list, at most `limit`, in the order of their due times, and tasks with equal times in the
   * order of their bytes. Rejects with `RedisRefusedError` if a key has another type, or if the keys are on different servers.
   */
  dispatch(call: DispatchCall): Promise<DispatchAnswer>;
}

export interface DispatchCall {
  /** The sorted set, by its full name. */
  readonly delayedKey: string;
  /** The list, by its full name. */
  readonly readyKey: string;
  readonly limit: number;
  /** Unit of the scores, since 1970. */
  readonly unit: 's' | 'ms';
  /** Maximum length of the list. */
  readonly maxReady?: number;
}

export interface DispatchAnswer {
  /** How many were moved. */
  readonly dispatched: number;
  /** How many are left in the sorted set, due or not. */
  readonly delayed: number;
  /** How many are in the list now. */
  readonly ready: number;
  /** Ms until the next task is due, 0 if one is due now. Null if there is none. */
  readonly dueInMs: number | null;
}
