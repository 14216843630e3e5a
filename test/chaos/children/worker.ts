import { setTimeout as pause } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  Handle,
  Processor,
  QUEUE_ENGINE,
  QueueModule,
  QueueRuntime,
  UnrecoverableError,
  type Job,
} from '#lib/index.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { connectionOf } from '../broken.js';
import { kindOf, type Payload } from '../load.js';
import { PREFIX, QUEUE } from '../plan.js';
import { mixedQueues } from '../mix/queues.js';
import { MixedWorker } from '../mix/worker.js';
import { die, fileLogger, ledger, onTold, plan, recorder, say, tellFigures } from './child.js';
import { Witness } from './witness.js';

const witness = new Witness(ledger);
const mixed = new MixedWorker(recorder, plan.mixed.file);
/** Kills this process right after the end of a handler, after this many ends; 0: never. */
let endsToLive = 0;

@Processor(QUEUE, { concurrency: plan.concurrency })
class Work {
  @Handle()
  async run(job: Job<Payload>): Promise<void> {
    const { n, k, ms } = job.data;
    const run = witness.begins(job, n);
    switch (kindOf(k)) {
      case 'slow':
      case 'long':
        await pause(ms);
        break;
      case 'flaky':
        if (job.attempt === 1) throw new Error('the first attempt fails');
        break;
      case 'doomed':
        throw new UnrecoverableError('this job can never succeed');
      case 'hopeless':
        throw new Error('every attempt fails');
      case 'blocker':
        for (const end = performance.now() + ms; performance.now() < end;);
        break;
      case 'poison':
        die();
    }
    witness.ends(run);
    if (endsToLive > 0 && --endsToLive === 0) die();
  }
}

@Module({
  imports: [
    QueueModule.forRoot({
      connection: connectionOf(plan),
      prefix: PREFIX,
      autoStart: false,
      lease: { duration: plan.leaseMs },
      shutdown: { timeout: 3_000, grace: 500 },
      events: { max: 1_000_000 },
    }),
    QueueModule.registerQueue({ name: QUEUE }),
    ...mixedQueues(),
  ],
  providers: [Work, ...mixed.processors(Math.ceil(plan.concurrency / 5))],
})
class WorkerApp {}

const app = await NestFactory.createApplicationContext(WorkerApp, {
  logger: fileLogger(),
  abortOnError: false,
});
app.enableShutdownHooks();
const engine = app.get<QueueEngine>(QUEUE_ENGINE);
witness.watch(engine);
mixed.watch(engine);
onTold((told) => {
  if (told.do !== 'die') return;
  if (told.when === 'after-end') endsToLive = told.count;
  else witness.dieInSettling = true;
});
tellFigures(() => ({ completed: witness.accepted, running: witness.running }));
await app.get(QueueRuntime).start();
say({ say: 'ready' });
