import {
  Controller,
  Get,
  Headers,
  HttpCode,
  type MessageEvent,
  Param,
  Post,
  Query,
  Sse,
  UseFilters,
} from '@nestjs/common';
import { InjectQueue, type Queue, QueueEvents } from 'godwit';
import { map, type Observable } from 'rxjs';
import { CHORES } from '../chores/chores.js';
import { ScheduleErrorFilter } from './schedule-error.filter.js';
import { scheduleOf, type ScheduleView, toView } from './schedule-view.js';

@Controller('schedules')
@UseFilters(ScheduleErrorFilter)
export class SchedulesController {
  constructor(
    private readonly events: QueueEvents,
    @InjectQueue(CHORES) private readonly chores: Queue,
  ) {}

  @Get()
  async list(): Promise<ScheduleView[]> {
    return (await this.chores.schedules.list()).map(toView);
  }

  /** Every event of every job, with the schedule that added it. A browser that lost the connection continues where it was. */
  @Sse('live')
  live(@Headers('last-event-id') last?: string, @Query('since') first?: string): Observable<MessageEvent> {
    const since = last || first;
    return this.events.of(CHORES, since ? { since } : {}).pipe(
      map((event) => {
        const schedule = event.jobId === undefined ? null : scheduleOf(event.jobId);
        return { id: event.eventId, data: { ...event, schedule } };
      }),
    );
  }

  /** The next times, for the curious: `?count=10`. */
  @Get(':id/next')
  next(@Param('id') id: string, @Query('count') count = '5'): Promise<Date[]> {
    return this.chores.schedules.nextRuns(id, Number(count));
  }

  @Post(':id/pause')
  @HttpCode(200)
  async pause(@Param('id') id: string): Promise<{ changed: boolean }> {
    return { changed: await this.chores.schedules.pause(id) };
  }

  @Post(':id/resume')
  @HttpCode(200)
  async resume(@Param('id') id: string): Promise<{ changed: boolean }> {
    return { changed: await this.chores.schedules.resume(id) };
  }

  /** Makes a job at once, whatever the time; also of one that is paused. */
  @Post(':id/run')
  @HttpCode(202)
  async run(@Param('id') id: string): Promise<{ jobId: string }> {
    return { jobId: (await this.chores.schedules.runNow(id)).id };
  }
}
