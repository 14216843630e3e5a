/** How often jobs may start. */
export interface RateRule {
  /** How many starts, or so much cost. */
  readonly max: number;
  /** In so many ms. */
  readonly per: number;
  readonly window: 'sliding' | 'fixed' | 'bucket';
  /** Of a bucket: how many may start at once after a rest. */
  readonly burst: number;
}

/**
 * What limits the jobs of a queue, of one name, or of a group. `false` takes back what a rule says that this one is laid over: the code, or
 * all groups.
 */
export interface LimitRule {
  readonly rate?: RateRule | false;
  /** Jobs that run at the same time, in all processes. */
  readonly concurrency?: number | false;
  /** Of a queue. */
  readonly aging?: AgingRule;
  /** Of groups: waiting jobs at most. */
  readonly maxSize?: number | false;
  /** Of groups: none of its jobs starts. */
  readonly paused?: boolean;
  /** Of groups: how many turns it gets for one of the others. */
  readonly weight?: number;
  /** Of groups. `strict`: one job after another, also where one is retried. */
  readonly order?: 'fair' | 'strict';
  /** Of groups in strict order: whether the next job starts when one is dead. */
  readonly onDead?: 'continue' | 'block';
}

/** A job moves up by so many priorities every so many ms that it waits. */
export interface AgingRule {
  readonly every: number;
  readonly by: number;
}

/** `q`: the queue. `g`: all groups. `g:<group>`: one group. `n:<name>`: the jobs of one name. `s:<name>`: a limit that queues share. */
export type LimitField = string;
