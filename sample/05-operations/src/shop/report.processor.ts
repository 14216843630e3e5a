import { setTimeout as pause } from 'node:timers/promises';
import { Handle, type Job, Processor, Schedule } from 'godwit';

@Processor('reports')
export class ReportProcessor {
  @Schedule({ every: '1m' })
  @Handle('sales')
  async sales(job: Job) {
    await pause(1_500, undefined, { signal: job.signal });
    return { orders: 100 + Math.floor(Math.random() * 50) };
  }

  @Handle('refunds')
  async refunds(job: Job<{ day: string }>) {
    await pause(5_000, undefined, { signal: job.signal });
    return { day: job.data.day, cents: Math.floor(Math.random() * 90_000) };
  }

  @Schedule({ cron: '0 7 * * MON-FRI', tz: 'Europe/Berlin' })
  @Handle('stock')
  stock() {
    return { articles: 412 };
  }
}
