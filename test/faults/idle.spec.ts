import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Type } from '@nestjs/common';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { startRedis } from '../../tools/redis.mjs';
import { bootApp } from '../support/app.js';
import { atEnd } from '../support/cleanup.js';
import { PATIENT } from '../support/queue-app.js';
import { until } from '../support/wait.js';

const MEASURED_MS = 10_000;

/** An application with this many queues and processors and no work, on a server of its own. */
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

  const sent = await countSent(server.port);
  const commands = async () => {
    await observer.ping();
    return sent();
  };
  const settled = async () => {
    await until(async () => (await get(QueueInspector).workers()).length === 1, PATIENT);
    for (let before = await commands(), after; ; before = after) {
      // One second after its start each worker asks whether other workers have met names that it handles.
      await pause(1_500);
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
  return { observer, settled, perSecond };
}

/** Counts the commands of all clients but the observer. A script counts as one command, whatever it reads. */
async function countSent(port: number): Promise<() => number> {
  const socket = connect(port, '127.0.0.1');
  atEnd(() => void socket.destroy());
  let rest = '';
  let count = 0;
  socket.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\r\n');
    rest = lines.pop()!;
    count += lines.filter((line) => /^\+\d/.test(line) && !/ lua\]|"ping"|"info"/i.test(line)).length;
  });
  socket.write('MONITOR\r\n');
  await once(socket, 'data');
  return () => count;
}

/** A job in the queue of this number, due in an hour. */
async function occupy({ observer }: Pick<Awaited<ReturnType<typeof bootIdle>>, 'observer'>, number: number) {
  const key = (kind: string) => `{godwit:queue-${number}}:${kind}`;
  await observer.zadd(key('delayed'), Date.now() + 3_600_000, 'far-off');
}

/**
 * With the default lease of 8 s: one block of 5 s, one check after it, and one report to the registry of workers each
 * 4 s. That is 0.2 + 0.2 + 0.25 commands a second, also where jobs are due later. A single queue has a claim beside
 * each block.
 */
it('sends about half a command per second while there is nothing to do, with one queue and with a hundred', async () => {
  const idle = await Promise.all([bootIdle(1), bootIdle(100), bootIdle(1), bootIdle(100)]);
  for (const one of idle.slice(2)) await occupy(one, 0);
  await occupy(idle[3]!, 77);
  await Promise.all(idle.map((one) => one.settled()));
  const figures = await Promise.all(idle.map((one) => one.perSecond()));
  for (const { figure, stats } of figures) {
    // It checks the lines too. A lost bell must not lose a job.
    expect(figure).toBeGreaterThan(0);
    expect(figure, `since the start: ${stats}`).toBeLessThan(1.2);
  }
}, 60_000);
