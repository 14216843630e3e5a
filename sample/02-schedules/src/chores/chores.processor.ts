import { setTimeout as pause } from 'node:timers/promises';
import { Handle, type Job, type JobOf, Processor, Schedule } from 'godwit';
import { CHORES, report } from './chores.js';

/** Regular tasks of a small shop. Each handler only waits instead of working. */
@Processor(CHORES, { concurrency: 5 })
export class ChoresProcessor {
  /** Up to two seconds later each time, so that not all shops ask their suppliers in the same instant. */
  @Handle('ask-suppliers')
  @Schedule({ every: '5s', jitter: '2s' })
  async askSuppliers(job: Job): Promise<void> {
    await this.work(job, 300);
  }

  /** Takes longer than its interval. With `skip`, occurrences during a run add no jobs. */
  @Handle('import-stock')
  @Schedule({ every: '10s', overlap: 'skip' })
  async importStock(job: Job): Promise<void> {
    await this.work(job, 14_000);
  }

  /** Six fields begin with seconds. The supplier of the rates fails now and then; the next attempt is a second later. */
  @Handle('fetch-rates')
  @Schedule({ cron: '*/15 * * * * *' })
  async fetchRates(job: Job): Promise<void> {
    await this.work(job, 900);
    if (job.attempt === 1 && Math.random() < 0.3) throw new Error('503 from the bank');
  }

  /** One handler, two schedules: at seven in the morning as the people there have it, in summer and in winter. */
  @Handle(report)
  @Schedule({
    id: 'report-berlin',
    cron: '0 7 * * MON-FRI',
    tz: 'Europe/Berlin',
    data: { office: 'Berlin' },
  })
  @Schedule({
    id: 'report-new-york',
    cron: '0 7 * * MON-FRI',
    tz: 'America/New_York',
    data: { office: 'New York' },
  })
  async report(job: JobOf<typeof report>): Promise<void> {
    await this.work(job, 2_000);
  }

  private async work(job: Job, ms: number): Promise<void> {
    await pause(ms, undefined, { signal: job.signal });
  }
}
