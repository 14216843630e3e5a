import { setTimeout as pause } from 'node:timers/promises';
import type { Type } from '@nestjs/common';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { QueueModule } from '#lib/queue.module.js';
import { startRedis } from '../../tools/redis.mjs';
import { bootApp } from '../support/app.js';
import { atEnd } from '../support/cleanup.js';
import { PATIENT } from '../support/queue-app.js';
import { until } from '../support/wait.js';

const MEASURED_MS = 10_000;

/** An application with so many queues and processors and nothing to do, on a server of its own. */
async function bootIdle(count: number) {
  const server = await startRedis({ private: true });
  atEnd(() => server.stop());
  const observer = new Redis(server.url);
  atEnd(() => observer.quit());

  const names = Array.from({ length: count }, (_, i) => `queue-${i}`);
  const processors = names.map((name): Type => {
    @Processor(name)
    class Idle {
      @Handle()
      run() {}
    }
    return Idle;
  });
  const root = QueueModule.forRoot({ connection: server.url });
  const queues = QueueModule.registerQueue(...names.map((name) => ({ name })));
  const { get } = await bootApp({ imports: [root, queues], providers: processors });

  let asked = 0;
  /** Commands that Redis has run for others than the observer; those inside scripts are counted too. */
  const commands = async () => {
    const stats = await observer.info('stats');
    return Number(/^total_commands_processed:(\d+)/m.exec(stats)![1]) - asked++;
  };
  const settled = async () => {
    await until(async () => (await get(QueueInspector).workers()).length === 1, PATIENT);
    for (let before = await commands(), after; ; before = after) {
      await pause(500);
      after = await commands();
      if (after === before) return;
    }
  };
  const perSecond = async () => {
    const before = await commands();
    const since = performance.now();
    await pause(MEASURED_MS);
    const figure = ((await commands()) - before) / ((performance.now() - since) / 1000);
    const stats = await observer.info('commandstats');
    return { figure, stats: stats.match(/cmdstat_[^:]+:calls=\d+/g)!.join(' ') };
  };
  return { settled, perSecond };
}

/**
 * With the default lease of 8 s: each 4 s a word to the registry of workers, which is a script of two commands (0.75 a second), a
 * block of 5 s and a look behind it (0.4), and a look for schedules now and then. The record itself is written anew each hour.
 */
it('makes fewer than two commands per second while there is nothing to do, with one queue and with a hundred', async () => {
  const idle = await Promise.all([bootIdle(1), bootIdle(100)]);
  await Promise.all(idle.map((one) => one.settled()));
  const figures = await Promise.all(idle.map((one) => one.perSecond()));
  for (const { figure, stats } of figures) {
    // It does look: a bell is never the only truth.
    expect(figure).toBeGreaterThan(0);
    expect(figure, `since the start: ${stats}`).toBeLessThan(2);
  }
}, 40_000);
