import { Injectable } from '@nestjs/common';
import { expect, it } from 'vitest';
import { freePort } from '../../tools/free-port.mjs';
import { startRedis } from '../../tools/redis.mjs';
import { OnQueueEvent } from '#lib/decorators/on-queue-event.decorator.js';
import type { EventOf } from '#lib/events/queue-event.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { KEEPING } from '../support/server.js';
import { until, within } from '../support/wait.js';

@Injectable()
class Audit {
  readonly heard: string[] = [];
  @OnQueueEvent('added')
  added({ jobId }: EventOf<'added'>) {
    this.heard.push(jobId);
  }
}

const boot = (url: string) =>
  bootQueue({ url, prefix: 'listeners' }, { watch: false, providers: [Audit], root: { role: 'producer' } });

it('an application without Redis starts and stops with listeners, which get events once Redis is there', async () => {
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  const app = await within(boot(url), { ...PATIENT, what: 'the application starts' });
  await within(app.close(), { ...PATIENT, what: 'the application stops' });

  const second = await boot(url);
  const late = await startRedis({ private: true, port });
  atEnd(() => second.close().then(() => late.stop()));
  await until(async () => {
    await second.queue.add('x', 1);
    return second.get(Audit).heard.length > 0;
  }, PATIENT);
  expect(second.get(Audit).heard.length).toBeGreaterThan(0);
});

it('a listener misses no stored event when Redis restarts', async () => {
  const server = await startRedis({
    private: true,
    args: KEEPING,
  });
  const app = await boot(server.url);
  atEnd(() => app.close().then(() => server.stop()));
  await app.queue.add('x', 1, { id: 'before' });
  await until(() => app.get(Audit).heard.length === 1, PATIENT);
  await server.restart();
  await app.queue.add('x', 1, { id: 'after' });
  await until(() => app.get(Audit).heard.length === 2, PATIENT);
  expect(app.get(Audit).heard).toEqual(['before', 'after']);
});
