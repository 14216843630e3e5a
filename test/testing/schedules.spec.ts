import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { Schedule, type ScheduledJob } from '#lib/decorators/schedule.decorator.js';
import { QueueMetrics, QueueMetricsModule } from '#lib/subpaths/prometheus.js';
import { QueueTesting } from '#lib/subpaths/testing.js';
import { setBench } from './support.js';

@Processor('work')
class Reports {
  static readonly times: string[] = [];
  constructor(private readonly testing: QueueTesting) {}

  @Handle('daily')
  @Schedule({ id: 'daily', cron: '0 9 * * *', tz: 'UTC' })
  daily(job: ScheduledJob) {
    Reports.times.push(`daily at ${this.testing.now.toISOString()}`);
    return job.data;
  }

  @Handle('other')
  other() {}
}

describe('schedules', () => {
  it('in the code exist from the start, and fire at their times', async () => {
    Reports.times.length = 0;
    const { testing, work, queue } = await setBench({ providers: [Reports] });
    expect(await queue.schedules.get('daily')).toMatchObject({ nextAt: new Date('2026-01-02T09:00:00Z') });
    await testing.advance('20h');
    expect(work.added()).toEqual([]);
    await testing.advance('2d');
    expect(work.added()).toMatchObject([
      { name: 'daily', schedule: 'daily', at: new Date('2026-01-02T09:00:00Z') },
      { name: 'daily', schedule: 'daily', at: new Date('2026-01-03T09:00:00Z') },
    ]);
    expect(Reports.times).toEqual([]);
    expect(await work.drain()).toMatchObject([{ outcome: 'completed' }, { outcome: 'completed' }]);
    expect(new Set(Reports.times)).toEqual(new Set(['daily at 2026-01-04T08:00:00.000Z']));
  });

  it('run at their times if advance has the option run', async () => {
    Reports.times.length = 0;
    const { testing, queue } = await setBench({ providers: [Reports] });
    await queue.schedules.upsert('often', { every: '10h' }, { name: 'other' });
    const runs = await testing.advance('2d', { run: true });
    expect(Reports.times).toEqual(['daily at 2026-01-02T09:00:00.000Z', 'daily at 2026-01-03T09:00:00.000Z']);
    expect(runs.filter(({ name }) => name === 'other')).toHaveLength(
      testing.queue('work').added('other').length,
    );
    expect(testing.queue('work').added('other').length).toBeGreaterThanOrEqual(4);
  });

  it.each([false, true])(
    'are counted by metrics, as are other adds and exchanges (autoStart: %s)',
    async (autoStart) => {
      const bench = { root: { autoStart }, providers: [Reports], imports: [QueueMetricsModule.forRoot()] };
      const { module, testing, queue } = await setBench(bench);
      await queue.add('other', null);
      await testing.advance('2d', { run: true });
      if (autoStart) await testing.idle();
      const text = await module.get(QueueMetrics, { strict: false }).text();
      expect(text).toContain('godwit_jobs_added_total{queue="work",name="other",result="added"} 1\n');
      expect(text).toContain('godwit_jobs_added_total{queue="work",name="daily",result="added"} 2\n');
      expect(text).toMatch(/godwit_exchange_duration_seconds_count \d/);
    },
  );

  it('from code stay when the queue is cleared, others go', async () => {
    const { testing, work, queue } = await setBench({ providers: [Reports] });
    await queue.schedules.upsert('often', { every: '10h' }, { name: 'other' });
    await testing.advance('1d');
    await work.clear();
    expect(await queue.schedules.get('often')).toBeNull();
    expect(await queue.schedules.get('daily')).not.toBeNull();
    await testing.advance('1d');
    expect(work.added().map(({ name }) => name)).toEqual(['daily']);
  });
});
