import type { ScheduledJobOptions, ScheduleRule } from '../options/schedule-options.js';
import { markMisplacedSchedule, markSchedule } from './metadata.js';
import { otherThanMethod } from './placement.js';

/** What `@Schedule` says beside the rule. */
export interface ScheduledJob {
  /** Id of the schedule in its queue. @default the name of the job */
  readonly id?: string;
  /** Name of the jobs. @default that of the method's `@Handle`; needed where it has several, or is the catch-all */
  readonly name?: string;
  /** Data of every job it makes. @default null */
  readonly data?: unknown;
  /** Options of every job it makes. */
  readonly options?: ScheduledJobOptions;
  /** The queue, where the processor works on several. */
  readonly queue?: string;
}

/** `@Schedule(options)`: a rule, and what is made by it. */
export type ScheduleOptions = ScheduleRule & ScheduledJob;

/**
 * Runs the handler by a rule: stands beside `@Handle` on a method of a `@Processor` class, and may be repeated. The schedule is
 * registered when the workers start, changed where the decorator has changed, and removed once no live process declares it any
 * more; one that a person paused stays paused. What is wrong with it is said at bootstrap in the `BootstrapError`, together with
 * all other faults.
 *
 * @example
 * @Handle('daily-report')
 * @Schedule({ cron: '0 7 * * 1-5', tz: 'Europe/Berlin', overlap: 'skip' })
 * async report(job: Job) {}
 */
export function Schedule(options: ScheduleOptions): MethodDecorator {
  return (target: object, key: PropertyKey | undefined, descriptor?: PropertyDescriptor) => {
    const misplaced = otherThanMethod(target, key, descriptor);
    if (misplaced === null) markSchedule(descriptor!.value as object, { given: options });
    else {
      const type = typeof target === 'function' ? target : target.constructor;
      markMisplacedSchedule(type, { given: options, key: key === undefined ? '' : String(key), misplaced });
    }
  };
}
