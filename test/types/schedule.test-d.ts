import { Handle, Processor, Schedule, type Job } from '#lib/index.js';

@Processor('reports')
export class Reports {
  @Handle('daily')
  @Schedule({ cron: '0 7 * * *', tz: 'Europe/Berlin', data: { office: 'Berlin' }, options: { attempts: 1 } })
  @Schedule({ id: 'often', every: '5m', startAt: new Date(), overlap: 'skip' })
  async daily(_job: Job<{ office: string }>) {}

  @Handle('wrong')
  // @ts-expect-error neither cron nor every
  @Schedule({ tz: 'Europe/Berlin' })
  // @ts-expect-error no such policy
  @Schedule({ every: '5m', overlap: 'queue' })
  // @ts-expect-error the schedule decides when
  @Schedule({ every: '5m', options: { delay: '1s' } })
  // @ts-expect-error no such option
  @Schedule({ every: '5m', timezone: 'UTC' })
  wrong() {}

  // @ts-expect-error a property is no handler
  @Schedule({ every: '5m' })
  property = 1;
}
