import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { Schedule } from '#lib/decorators/schedule.decorator.js';

/** A processor whose decorator declares the schedule `report`. */
@Processor('work')
export class Reports {
  @Handle('report')
  @Schedule({ every: '1h' })
  report() {}
}
