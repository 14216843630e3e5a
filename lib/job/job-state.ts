/** The states a job can be in; at any moment it is in exactly one. */
export type JobState = 'waiting' | 'delayed' | 'active' | 'completed' | 'dead' | 'cancelled';

/** States of jobs that have ended and are kept. */
export const ENDED_STATES = ['completed', 'dead', 'cancelled'] as const;

/** The state of a job that has ended and is kept. */
export type EndedState = (typeof ENDED_STATES)[number];

/** How many jobs are in each state. */
export type JobCounts = Readonly<Record<JobState, number>>;

/** One legal transition between two states. */
interface JobMove {
  /** The state before; null if the job is not in the queue. */
  readonly from: JobState | null;
  /** The event of the transition; null if there is none. */
  readonly event:
    | 'added'
    | 'delayed'
    | 'active'
    | 'completed'
    | 'retrying'
    | 'dead'
    | 'stalled'
    | 'released'
    | 'removed'
    | 'cancelled'
    | 'updated'
    | null;
  /** The state after; null if the job has left the queue. */
  readonly to: JobState | null;
  /** The cause of the transition. */
  readonly when: string;
}

/** Every legal transition. Tests compare the scripts with this table. */
export const JOB_MOVES: readonly JobMove[] = Object.freeze([
  { from: null, event: 'added', to: 'waiting', when: 'it is added' },
  { from: null, event: 'delayed', to: 'delayed', when: 'it is added with delay or runAt' },
  { from: 'delayed', event: null, to: 'waiting', when: 'its time has come, or a person promotes it' },
  { from: 'waiting', event: 'active', to: 'active', when: 'a worker with a free slot claims it' },
  { from: 'waiting', event: 'dead', to: 'dead', when: 'its body is gone (corrupt)' },
  {
    from: 'active',
    event: 'completed',
    to: 'completed',
    when: 'the handler returns and the job has a retention',
  },
  { from: 'active', event: 'completed', to: null, when: 'the handler returns' },
  {
    from: 'active',
    event: 'retrying',
    to: 'delayed',
    when: 'the attempt fails, and more attempts are left',
  },
  { from: 'active', event: 'retrying', to: 'waiting', when: 'the same, with a wait of 0' },
  {
    from: 'active',
    event: 'delayed',
    to: 'delayed',
    when: 'the handler throws a Snooze; no attempt is counted',
  },
  { from: 'active', event: 'delayed', to: 'waiting', when: 'the same, with a wait of 0' },
  { from: 'active', event: 'released', to: 'waiting', when: 'its worker stops; the attempt is not counted' },
  {
    from: 'active',
    event: 'stalled',
    to: 'waiting',
    when: 'the lease of its worker ends; a stall is counted',
  },
  { from: 'active', event: 'dead', to: 'dead', when: 'no attempt can help: see its reason' },
  { from: 'dead', event: 'added', to: 'waiting', when: 'a person retries it' },
  {
    from: 'dead',
    event: 'removed',
    to: null,
    when: 'a person removes or cleans it, a new job takes its id, or it is beyond the number or age that dead jobs are kept',
  },
  {
    from: 'waiting',
    event: 'removed',
    to: null,
    when: 'a person removes or cleans it, or the next job of its schedule replaces it',
  },
  {
    from: 'delayed',
    event: 'removed',
    to: null,
    when: 'a person removes or cleans it, or the next job of its schedule replaces it',
  },
  {
    from: 'completed',
    event: 'removed',
    to: null,
    when: 'a person removes or cleans it, or a new job takes its id',
  },
  {
    from: 'completed',
    event: null,
    to: null,
    when: 'its retention is over, or it is beyond the number kept',
  },
  { from: 'waiting', event: 'updated', to: 'delayed', when: 'it gets a delay' },
  { from: 'delayed', event: 'updated', to: 'waiting', when: 'its delay is taken away' },
  { from: 'waiting', event: 'cancelled', to: null, when: 'it is cancelled' },
  ...(['waiting', 'delayed', 'active'] as const).map((from) => ({
    from,
    event: 'cancelled' as const,
    to: 'cancelled' as const,
    when: 'the same, and the job has a retention for that',
  })),
  {
    from: 'cancelled',
    event: 'removed',
    to: null,
    when: 'a person removes or cleans it, or a new job takes its id',
  },
  {
    from: 'cancelled',
    event: null,
    to: null,
    when: 'its retention is over, or it is beyond the number kept',
  },
  { from: 'delayed', event: 'cancelled', to: null, when: 'it is cancelled' },
  {
    from: 'active',
    event: 'cancelled',
    to: null,
    when: 'it was cancelled meanwhile, and its run fails, is given back or loses its worker',
  },
]);
