/**
 * Queues that other programs fill and empty with plain commands: a task waits in a sorted set (`ZADD delayed due task`) until
 * it is due, and in a list (`BLPOP ready`) until somebody takes it. Tasks are bytes and nobody here reads them.
 */
export interface TaskVerbs {
  /**
   * Moves due tasks to the end of the list, at most `limit`, in the order of their due times (by their bytes where those are
   * equal). Rejects with `RedisRefusedError` where one of the keys holds something else, or both are not on one server.
   */
  dispatch(call: DispatchCall): Promise<DispatchAnswer>;
}

export interface DispatchCall {
  /** The sorted set, by its full name. */
  readonly delayedKey: string;
  /** The list, by its full name. */
  readonly readyKey: string;
  readonly limit: number;
  /** What the scores count since 1970. */
  readonly unit: 's' | 'ms';
  /** The list grows no longer than this. */
  readonly maxReady?: number;
}

export interface DispatchAnswer {
  /** How many were moved. */
  readonly dispatched: number;
  /** How many are left in the sorted set, due or not. */
  readonly delayed: number;
  /** How many are in the list now. */
  readonly ready: number;
  /** Until the next one is due, 0 where it is; null where there is none that ever will be. */
  readonly dueInMs: number | null;
}
