// A Nest application that adds to its queues at a given rate and works on them. It writes what happens to a file, outside of
// Redis: `I` an add begins, `A` it is acknowledged, `R` it was said not to be stored, `U` it is unknown, `S` a run begins, `E` it
// ends, `C` a completion is told, `L` a connection changes. `Load` in load.ts starts it, PLAN says what it does.
import 'reflect-metadata';
import { openSync, writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Handle, Processor, QUEUE_ENGINE, QueueEvents, QueueModule, getQueueToken } from '#lib/index.js';

const TICK_MS = 5;
const DELAY_MS = 5_000;
const DRAIN_MS = 90_000;

const { root, queues, ledger, perSecond } = JSON.parse(process.env.PLAN);
const file = openSync(ledger, 'a');
const note = (what, id) => writeSync(file, `${what} ${id} ${Date.now()}\n`);
const tell = (message) => process.connected && process.send(message);
const unhandled = [];
for (const event of ['unhandledRejection', 'uncaughtException']) {
  process.on(event, (error) => unhandled.push(String(error?.stack ?? error)));
}

function workerOf(queue) {
  class Worker {
    run(job) {
      note('S', job.id);
      note('E', job.id);
    }
  }
  Handle()(Worker.prototype, 'run', Object.getOwnPropertyDescriptor(Worker.prototype, 'run'));
  Processor(queue, { concurrency: 20 })(Worker);
  return Worker;
}

class AppModule {}
Module({
  imports: [QueueModule.forRoot(root), ...queues.map((queue) => QueueModule.registerQueue(queue))],
  providers: queues.map(({ name }) => workerOf(name)),
})(AppModule);

const complaints = [];
const logger = {
  log: () => {},
  debug: () => {},
  verbose: () => {},
  warn: (text) => complaints.push(String(text)),
  error: (text) => complaints.push(String(text)),
  fatal: (text) => complaints.push(String(text)),
};
const app = await NestFactory.createApplicationContext(AppModule, { logger, abortOnError: false });
const engine = app.get(QUEUE_ENGINE);
engine.onLink(({ role, state }) => note('L', `${role}-${state}`));
const events = app.get(QueueEvents);
const handles = queues.map(({ name }) => app.get(getQueueToken(name), { strict: false }));
for (const { name } of queues) {
  events.of(name).subscribe(({ type, jobId }) => type === 'completed' && note('C', jobId));
}

const adds = new Set();
let made = 0;
async function addOne(queue, at) {
  const id = `${queues[at].name}:${made}`;
  // Half of them wait. Jobs that ran before the store loses its last writes would not be missed.
  const delay = made % 2 === 0 ? DELAY_MS : 0;
  note('I', id);
  try {
    await queue.add('one', null, { id, delay });
    note('A', id);
  } catch (error) {
    if (error.applied === undefined) unhandled.push(String(error.stack));
    note(error.applied === 'no' ? 'R' : 'U', id);
  }
}
const since = performance.now();
const timer = setInterval(() => {
  const due = ((performance.now() - since) / 1000) * perSecond;
  for (; made < due; made++) {
    for (const [at, queue] of handles.entries()) {
      const add = addOne(queue, at).finally(() => adds.delete(add));
      adds.add(add);
    }
  }
}, TICK_MS);

async function drained() {
  for (const deadline = performance.now() + DRAIN_MS; performance.now() < deadline; await pause(100)) {
    try {
      const counts = await Promise.all(handles.map((queue) => queue.counts()));
      if (counts.every(({ waiting, delayed, active }) => waiting + delayed + active === 0)) return true;
    } catch (error) {
      complaints.push(`while draining: ${error.message}`);
    }
  }
  return false;
}

async function finish() {
  clearInterval(timer);
  await Promise.all(adds);
  const isDrained = await drained();
  const audits = await Promise.all(handles.map((queue) => queue.audit()));
  const violations = audits.flatMap((audit) => audit.violations);
  const counts = await Promise.all(handles.map((queue) => queue.counts()));
  tell({ kind: 'finished', isDrained, violations, counts, unhandled, complaints });
}

process.on('message', (message) => {
  if (message === 'finish') {
    finish().catch((error) => tell({ kind: 'failed', text: String(error.stack) }));
  } else {
    process.disconnect();
    void app.close();
  }
});
tell({ kind: 'ready' });
