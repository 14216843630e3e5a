import { Injectable } from '@nestjs/common';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { OnQueueEvent } from '#lib/decorators/on-queue-event.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { Schedule } from '#lib/decorators/schedule.decorator.js';

/** Opens a connection of its own, which a stop must close. */
@Injectable()
export class Listening {
  @OnQueueEvent('completed', { queue: 'work' })
  hear() {}
}

/** Declares a schedule, which a stop must sign off. */
@Processor('planned')
export class Planned {
  @Handle('tick')
  @Schedule({ every: '1h' })
  tick() {}
}
