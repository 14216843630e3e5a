/** The states a job can be in; at any moment it is in exactly one. */
export type JobState = 'waiting' | 'delayed' | 'active' | 'completed' | 'dead' | 'cancelled';

/** All states, in the order in which they are shown. */
export const JOB_STATES = [
  'waiting',
  'active',
  'delayed',
  'completed',
  'dead',
  'cancelled',
] as const satisfies readonly JobState[];

/** States of jobs that have ended and are kept. */
export const ENDED_STATES = ['completed', 'dead', 'cancelled'] as const;

/** The state of a job that has ended and is kept. */
export type EndedState = (typeof ENDED_STATES)[number];

/** How many jobs are in each state. */
export type JobCounts = Readonly<Record<JobState, number>>;
