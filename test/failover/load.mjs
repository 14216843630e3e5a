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
/** How long a run of a queue with groups holds its slot. */
const RUN_MS = 5;
/** Keys that are tried again in the end. */
const KEYS = 200;
const DELAY_MS = 5_000;
const DRAIN_MS = 90_000;

const { root, queues, ledger, perSecond, tenants } = JSON.parse(process.env.PLAN);
const file = openSync(ledger, 'a');
const note = (what, id) => writeSync(file, `${what} ${id} ${Date.now()}\n`);
const tell = (message) => process.connected && process.send(message);
const unhandled = [];
for (const event of ['unhandledRejection', 'uncaughtException']) {
  process.on(event, (error) => unhandled.push(String(error?.stack ?? error)));
}

/** A job with a key has a generated id, so its data has the id that the ledger knows. */
const idOf = (job) => job.data ?? job.id;

function workerOf(queue, hasGroups) {
  class Worker {
    async run(job) {
      note('S', idOf(job));
      if (hasGroups) await pause(RUN_MS);
      note('E', idOf(job));
    }
  }
  Handle()(Worker.prototype, 'run', Object.getOwnPropertyDescriptor(Worker.prototype, 'run'));
  Processor(queue, { concurrency: 20 })(Worker);
  return Worker;
}

class AppModule {}
Module({
  imports: [QueueModule.forRoot(root), ...queues.map((queue) => QueueModule.registerQueue(queue))],
  providers: queues.map(({ name, groups }) => workerOf(name, groups !== undefined)),
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
/** The ids of the ledger, by generated ids. */
const ids = new Map();
const events = app.get(QueueEvents);
const handles = queues.map(({ name }) => app.get(getQueueToken(name), { strict: false }));
for (const { name } of queues) {
  events.of(name).subscribe(({ type, jobId }) => type === 'completed' && note('C', ids.get(jobId) ?? jobId));
}

const adds = new Set();
let made = 0;
/** Of a queue with groups: each tenant is a group, and each job has a key. */
const keyed = (number, id) => ({ group: `tenant ${number % tenants}`, unique: { key: id } });

async function addOne(queue, at) {
  const id = `${queues[at].name}:${made}`;
  const hasGroups = queues[at].groups !== undefined;
  // Half of them wait. Jobs that ran before the store loses its last writes would not be missed.
  const delay = made % 2 === 0 ? DELAY_MS : 0;
  note('I', id);
  try {
    if (hasGroups) {
      const added = await queue.add('one', id, { delay, ...keyed(made, id) });
      if (added.duplicate) unhandled.push(`${id} met a key that nobody else uses`);
      ids.set(added.id, id);
    } else {
      await queue.add('one', null, { id, delay });
    }
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

/** Jobs with the latest keys, all of which have ended: none of them may find its key in use. Returns how many do. */
async function keysInUse(queue, name) {
  const jobs = Array.from({ length: Math.min(made, KEYS) }, (_, i) => {
    const id = `${name}:${made - 1 - i}`;
    return { name: 'one', data: `again:${id}`, options: keyed(made - 1 - i, id) };
  });
  return (await queue.addBulk(jobs)).filter(({ duplicate }) => duplicate).length;
}

async function finish() {
  clearInterval(timer);
  await Promise.all(adds);
  let isDrained = await drained();
  let stuckKeys = 0;
  const stuckGroups = [];
  for (const [at, { name, groups }] of queues.entries()) {
    if (groups === undefined || !isDrained) continue;
    stuckKeys += await keysInUse(handles[at], name);
    isDrained = await drained();
    const left = (await handles[at].groups()).groups;
    const limits = (await handles[at].limits.list()).filter(({ running }) => running > 0);
    stuckGroups.push(...left, ...limits);
    // They tell whether the jobs of these groups are there too.
    if (stuckGroups.length > 0) stuckGroups.push(await handles[at].counts());
  }
  const audits = await Promise.all(handles.map((queue) => queue.audit()));
  const violations = audits.flatMap((audit) => audit.violations);
  const counts = await Promise.all(handles.map((queue) => queue.counts()));
  tell({ kind: 'finished', isDrained, violations, counts, unhandled, complaints, stuckKeys, stuckGroups });
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
