import type { ScheduledJobOptions, ScheduleRule } from '../options/schedule-options.js';
import { misplacedSchedules, scheduleMarks, otherThanMethod } from './metadata.js';

/** The job of a `@Schedule`. */
export interface ScheduledJob {
  /** Id of the schedule in its queue. @default the name of the job */
  readonly id?: string;
  /** Name of the jobs. @default that of the method's `@Handle`; required if it has several names or none */
  readonly name?: string;
  /** Data of every job. @default null */
  readonly data?: unknown;
  /** Options of every job. */
  readonly options?: ScheduledJobOptions;
  /** The queue, if the processor has several. */
  readonly queue?: string;
}

/** `@Schedule(options)`: a rule, and the job that it adds. */
export type ScheduleOptions = ScheduleRule & ScheduledJob;

/**
 * Runs the handler at the times of a rule. Use it next to `@Handle` on a method of a `@Processor` class; it may be repeated.
 * Schedules are synced when workers start: created, updated if the decorator changed, and removed when no running process
 * declares them any more. A paused schedule stays paused. Mistakes are reported at bootstrap in the `BootstrapError`, together
 * with all others.
 *
 * @example
 * ;@Handle('daily-report')@Schedule({ cron: '0 7 * * 1-5', tz: 'Europe/Berlin', overlap: 'skip' })
 * async report(job: Job) {}
 */
export function Schedule(options: ScheduleOptions): MethodDecorator {
  return (target: object, key: PropertyKey | undefined, descriptor?: PropertyDescriptor) => {
    const misplaced = otherThanMethod(target, key, descriptor);
    if (misplaced === null) scheduleMarks.add(descriptor!.value as object, { given: options });
    else {
      const type = typeof target === 'function' ? target : target.constructor;
      misplacedSchedules.add(type, { given: options, key: key === undefined ? '' : String(key), misplaced });
    }
  };
}
