import { defineJob } from 'godwit';
import { z } from 'zod';

export const CHORES = 'chores';

export const OFFICES = ['Berlin', 'New York'] as const;

/** A report is for one office: the schedules that make it say for which, and the schema holds them to it at the start. */
export const report = defineJob(CHORES, 'report', z.object({ office: z.enum(OFFICES) }));
