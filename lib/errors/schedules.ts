import { GodwitError } from './base.js';
import { show } from './show.js';

/** There is no schedule with this id (any more). */
export class ScheduleNotFoundError extends GodwitError {
  readonly code = 'GODWIT_SCHEDULE_NOT_FOUND';

  constructor(
    readonly queue: string,
    readonly scheduleId: string,
  ) {
    super(`queue '${queue}' has no schedule ${show(scheduleId)}; make it with schedules.upsert() first`);
  }
}
