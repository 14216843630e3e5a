import { setTimeout as pause } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getQueueToken, QueueModule, QueueProducer, type Queue } from '#lib/index.js';
import { connectionOf } from '../broken.js';
import { PREFIX, QUEUE } from '../plan.js';
import { MixedClient } from '../mix/client.js';
import { MIXED, mixedQueues } from '../mix/queues.js';
import { Adder } from './adder.js';
import { die, fileLogger, ledger, onTold, plan, recorder, say, tellFigures } from './child.js';

/** Concurrent adds of single jobs, besides one bulk. */
const SINGLES = 16;
/** Single adds and bulks share the load. Bulks have from a few jobs to more than one call can hold. */
const BULKS = [20, 100, 300, 1_000, 2_300];

@Module({
  imports: [
    QueueModule.forRoot({
      connection: connectionOf(plan),
      prefix: PREFIX,
      role: 'producer',
      events: { max: 1_000_000 },
    }),
    QueueModule.registerQueue({ name: QUEUE }),
    ...mixedQueues(),
  ],
})
class ProducerApp {}

const { rate, jobs } = plan.produce!;
const app = await NestFactory.createApplicationContext(ProducerApp, {
  logger: fileLogger(),
  abortOnError: false,
});
app.enableShutdownHooks();
const adder = new Adder(app.get(QueueProducer), ledger, plan);
const startedAt = performance.now();
let isOpen = true;
let dieInAdd = 0;

onTold((told) => {
  switch (told.do) {
    case 'flow':
      isOpen = told.open;
      return;
    case 'die':
      dieInAdd = told.count;
      return;
    case 'add':
      void adder.add({ kind: told.kind, ms: told.ms, delay: 0, priority: 0 }).then((accepted) => {
        if (accepted) say({ say: 'accepted' });
      });
      return;
    default:
      return;
  }
});
tellFigures(() => ({ added: adder.accepted }));
say({ say: 'ready' });

const queues = new Map(MIXED.map((name) => [name, app.get<Queue>(getQueueToken(name))]));
const client = new MixedClient(queues, recorder, plan.mixed.file, plan.seed + process.pid);
const stop = new AbortController();
const mixed = client.schedule().then(() => client.run(Infinity, stop.signal));
await Promise.all([bulks(), ...Array.from({ length: SINGLES }, singles), pause(plan.mixed.ms)]);
stop.abort();
await mixed;
say({ say: 'done' });

async function singles(): Promise<void> {
  while (await mayAdd()) await adder.add();
}

async function bulks(): Promise<void> {
  for (let i = 0; await mayAdd(); i++) {
    const size = Math.min(BULKS[i % BULKS.length]!, Math.max(1, jobs - adder.accepted));
    const added = adder.addBulk(size);
    if (dieInAdd > 0) setTimeout(die, dieInAdd - 1);
    await added;
  }
}

/** Waits until the backlog is small enough; false once all jobs are added. */
async function mayAdd(): Promise<boolean> {
  while (adder.accepted < jobs) {
    const due = rate === 0 ? jobs : ((performance.now() - startedAt) / 1000) * rate;
    if (isOpen && adder.accepted < due) return true;
    await pause(10);
  }
  return false;
}
