// A Nest application in a process of its own. `spawnApp` in spawn.ts starts it, PLAN says what it is, and what it says goes
// to its parent. The name of a job is what its handler does.
import 'reflect-metadata';
import { openSync, writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  Handle,
  Processor,
  QUEUE_ENGINE,
  QueueModule,
  QueueProducer,
  QueueRuntime,
  Schedule,
  getQueueToken,
} from '#lib/index.js';

const { root, queue, concurrency, schedules = [], ledger, as = {}, extras } = JSON.parse(process.env.PLAN);
/** The additions of this process: more deeds, and more verbs of the application. */
const more = extras === undefined ? {} : await import(extras);
const tell = (message) => process.connected && process.send(message);

// O_APPEND and a synchronous write: what is written has happened, also when the process is killed at the next instruction.
const file = ledger === undefined ? undefined : openSync(ledger, 'a');
const note = (what, job) => file !== undefined && writeSync(file, `${what} ${job.id} ${process.pid}\n`);

let release;
const released = new Promise((resolve) => (release = resolve));
const aborted = (job) =>
  new Promise((resolve) => {
    if (job.signal.aborted) resolve();
    else job.signal.addEventListener('abort', () => resolve(), { once: true });
  });

const deeds = {
  quick: () => {},
  sleep: ({ data }) => pause(data),
  /** Ends when the parent asks for it, even if its signal is lost. */
  hold: () => released,
  /** Waits for its signal, and fails by it. */
  obey: (job) => aborted(job).then(() => job.signal.throwIfAborted()),
  block: ({ data }) => {
    for (const end = performance.now() + data; performance.now() < end;);
  },
  stuck: () => {
    for (;;);
  },
  fail: () => {
    throw new Error('told to fail');
  },
  poison: () => process.kill(process.pid, 'SIGKILL'),
  ...more.deeds,
};

class Doer {
  async run(job) {
    const deed = as[job.name] ?? job.name;
    // Jobs by the million are counted, not told one by one.
    if (more.deeds?.[deed]) {
      await deeds[deed](job);
      return;
    }
    note('S', job);
    tell({ kind: 'started', id: job.id, attempt: job.attempt, ms: performance.now() });
    void aborted(job).then(() =>
      tell({ kind: 'aborted', id: job.id, reason: job.signal.reason.reason, attempt: job.attempt }),
    );
    await deeds[deed](job);
    note('E', job);
    tell({ kind: 'ended', id: job.id });
  }
}
Handle()(Doer.prototype, 'run', Object.getOwnPropertyDescriptor(Doer.prototype, 'run'));
for (const options of schedules) {
  Schedule(options)(Doer.prototype, 'run', Object.getOwnPropertyDescriptor(Doer.prototype, 'run'));
}
Processor(queue, { concurrency: concurrency ?? 10 })(Doer);

class AppModule {}
Module({
  imports: [QueueModule.forRoot(root), QueueModule.registerQueue({ name: queue })],
  providers: concurrency === undefined ? [] : [Doer],
})(AppModule);

const say = (level) => (text) => tell({ kind: 'log', level, text: String(text) });
const levels = ['log', 'warn', 'error', 'debug', 'verbose', 'fatal'];
const logger = Object.fromEntries(levels.map((level) => [level, say(level)]));

for (const event of ['unhandledRejection', 'uncaughtException']) {
  process.on(event, (error) => tell({ kind: 'unhandled', text: String(error?.stack ?? error) }));
}

const app = await NestFactory.createApplicationContext(AppModule, { logger, abortOnError: false });
app.enableShutdownHooks();

const verbs = {
  add: ([name, data, options]) => app.get(QueueProducer).add(queue, name, data, options),
  get: ([id]) => app.get(getQueueToken(queue), { strict: false }).get(id),
  start: () => app.get(QueueRuntime).start(),
  state: () => app.get(QueueRuntime).state,
  release: () => release(),
  /** Nothing is told any more, so nothing but the application can keep the process alive. */
  close: () => {
    process.disconnect();
    return app.close();
  },
  ...more.verbs?.({ app, queue, tell }),
};
const answer = async ({ call, verb, args }) => {
  try {
    tell({ kind: 'answer', call, value: await verbs[verb](args) });
  } catch (error) {
    tell({ kind: 'answer', call, error: `${error.code}: ${error.message}` });
  }
};
process.on('message', (message) => void answer(message));
app
  .get(QUEUE_ENGINE)
  .onLink(({ role, state, error }) => tell({ kind: 'link', role, state, text: error?.message }));
tell({ kind: 'ready' });
