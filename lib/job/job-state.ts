/** The states a job can be in; at any moment it is in exactly one. */
export type JobState = 'waiting' | 'delayed' | 'active' | 'completed' | 'dead';

/** How many jobs are in each state. */
export type JobCounts = Readonly<Record<JobState, number>>;
