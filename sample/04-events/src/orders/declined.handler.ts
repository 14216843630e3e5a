import { EventsHandler, type IEventHandler } from '@nestjs/cqrs';
import { JobDied } from '../bridges/job-events.js';
import { Journal } from '../journal.js';

@EventsHandler(JobDied)
export class DeclinedHandler implements IEventHandler<JobDied> {
  constructor(private readonly journal: Journal) {}

  handle({ event }: JobDied): void {
    this.journal.write('@EventsHandler(JobDied)', `${event.jobId}: ${event.error?.message}`);
  }
}
