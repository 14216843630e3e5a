import { GodwitError } from './base.js';
import { show } from './show.js';

/**
 * There is no schedule with this id (any more).
 *
 * @example
 * if (error instanceof ScheduleNotFoundError) throw new NotFoundException(`no schedule ${error.scheduleId}`);
 */
export class ScheduleNotFoundError extends GodwitError {
  readonly code = 'GODWIT_SCHEDULE_NOT_FOUND';

  constructor(
    /** Name of the queue. */
    readonly queue: string,
    /** Id of the schedule. */
    readonly scheduleId: string,
  ) {
    super(`queue '${queue}' has no schedule ${show(scheduleId)}; make it with schedules.upsert() first`);
  }
}
