// One process of a rolling deploy, on the version of the library that it is told. The spec speaks to it over IPC: it asks for calls
// of `queue`, and hears which jobs run here.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';

const { entry, url, prefix, names } = JSON.parse(process.argv[2]);
const { getQueueToken, Handle, Processor, QueueEvents, QueueInspector, QueueModule, Snooze } = await import(
  entry
);

const admin = new Redis(url);
const tell = (message) => process.send?.(message);
/** Whether no process has met the job before. */
const isFirst = async ({ id }) => (await admin.sadd(`{${prefix}:spec}:seen`, id)) === 1;

const HANDLERS = {
  plain: () => undefined,
  tick: () => undefined,
  fresh: () => undefined,
  flaky: async (job) => {
    await job.log('tries');
    if (await isFirst(job)) throw new Error('not yet');
  },
  snooze: async (job) => {
    if (await isFirst(job)) throw new Snooze(20);
  },
  endless: ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
};

class Works {}
for (const name of names) {
  const method = `on_${name}`;
  Works.prototype[method] = async (job) => {
    tell({ begun: job.id });
    const result = await HANDLERS[name](job);
    tell({ ran: job.id });
    return result;
  };
  Handle(name)(Works.prototype, method, Object.getOwnPropertyDescriptor(Works.prototype, method));
}
Processor('work', { concurrency: 3 })(Works);

class App {}
Module({
  imports: [
    QueueModule.forRoot({
      connection: url,
      prefix,
      // A cancel is heard within a quarter of it.
      lease: { duration: '6s' },
      defaults: { attempts: 3, backoff: 10, retention: '1h' },
    }),
    QueueModule.registerQueue({ name: 'work' }),
  ],
  providers: [Works],
})(App);

const app = await NestFactory.createApplicationContext(App, { logger: ['error', 'warn'] });
const queue = app.get(getQueueToken('work'));
const events = app.get(QueueEvents);
events.of('work').subscribe(({ type, jobId }) => tell({ event: type, id: jobId }));
await events.ready('work');
const targets = { queue, schedules: queue.schedules, dead: queue.dead, inspector: app.get(QueueInspector) };

process.on('message', ({ ask, target, method, args }) => {
  const answer = method === 'close' ? app.close() : targets[target][method](...args);
  Promise.resolve(answer).then(
    (value) => tell({ answer: ask, value: JSON.parse(JSON.stringify(value ?? null)) }),
    (error) => tell({ answer: ask, error: `${error.code}: ${error.message}` }),
  );
  if (method === 'close') void answer.then(() => (admin.disconnect(), process.disconnect?.()));
});
tell({ ready: true });
