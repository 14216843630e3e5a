import { setImmediate as pause } from 'node:timers/promises';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { OnQueueEvent } from '#lib/decorators/on-queue-event.decorator.js';
import type { EventOf } from '#lib/events/queue-event.js';
import { useRedis } from '../support/redis.js';
import { bootQueue, Logs, PATIENT, type QueueAppOptions } from '../support/queue-app.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

const boot = (options: QueueAppOptions) => bootQueue(redis, options);

describe('at the end, a listener', () => {
  it('gets events of the runs that the drain waits for, before its dependencies are destroyed, and then no more', async () => {
    const started = latch('the run');
    const finish = latch('its end');
    @Injectable()
    class Database implements OnModuleDestroy {
      isOpen = true;
      onModuleDestroy() {
        this.isOpen = false;
      }
    }
    @Injectable()
    class Records {
      readonly heard: string[] = [];
      constructor(private readonly database: Database) {}
      @OnQueueEvent(['completed', 'added'])
      async done(event: EventOf<'completed' | 'added'>) {
        await pause();
        this.heard.push(`${event.type} ${event.jobId} ${this.database.isOpen ? 'stored' : 'too late'}`);
      }
    }
    const data = { module: class Data {}, providers: [Database], exports: [Database] };
    const own = { module: class Own {}, imports: [data], providers: [Records] };
    const logs = new Logs();
    const other = await boot({ root: { role: 'producer' }, watch: false, logs });
    const app = await boot({
      imports: [own],
      watch: false,
      logs,
      handlers: {
        long: async () => {
          started.open();
          await finish.promise;
        },
      },
    });
    await app.queue.add('long', 1, { id: 'a' });
    await started.wait(PATIENT);
    const closed = app.close();
    finish.open();
    await closed;
    const { heard } = app.get(Records);
    expect(heard).toEqual(['added a stored', 'completed a stored']);
    await other.queue.add('long', 1, { id: 'later' });
    expect(heard).toHaveLength(2);
    expect(logs.complaints.filter((line) => line.includes('Records'))).toEqual([]);
  });

  it('is not waited for if it does not end, and the log says how many calls were left', async () => {
    @Injectable()
    class Stuck {
      readonly heard: string[] = [];
      @OnQueueEvent('added')
      async never({ jobId }: EventOf<'added'>) {
        this.heard.push(jobId);
        await new Promise(() => {});
      }
    }
    const app = await boot({ providers: [Stuck], watch: false });
    await app.queue.addBulk([
      { name: 'x', data: 1 },
      { name: 'x', data: 2 },
    ]);
    await until(() => app.get(Stuck).heard.length > 0, PATIENT);
    await app.close();
    expect(app.logs.complaints.filter((line) => line.startsWith('Stuck'))).toEqual([
      'Stuck.never was stopped before it had handled all events; calls that have not ended: 1, events dropped: 1',
    ]);
  });
});
