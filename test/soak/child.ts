// A worker process of a run that is killed in the middle. It reports its runs to the process of the test.
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { QueueModule } from '#lib/module/queue.module.js';
import { optionsOf, type Witness } from './handlers.js';
import type { AppPlan, Plan } from './plan.js';
import { sharedNow, type Report } from './replay.js';

type Untimed<One> = One extends unknown ? Omit<One, 'at'> : never;

export interface ChildPlan {
  readonly plan: Plan;
  readonly app: AppPlan;
  readonly connection: string;
  readonly prefix: string;
}

const { plan, app, connection, prefix } = JSON.parse(process.env['SOAK']!) as ChildPlan;
const send = (report: Untimed<Report>) => void process.send!({ ...report, at: sharedNow() });
const runs = new Map<string, number>();
const open = new Map<unknown, number>();
let run = 0;

const witness: Witness = {
  begins(job) {
    const { queue, id, name, group, data } = job;
    open.set(job, ++run);
    send({ kind: 'begins', run, job: { queue, id, name, group, data } });
    const count = (runs.get(`${queue} ${id}`) ?? 0) + 1;
    runs.set(`${queue} ${id}`, count);
    return count;
  },
  ends: (job) => send({ kind: 'ends', run: open.get(job)! }),
  revised: (queue, id, revision) => send({ kind: 'revised', queue, id, revision }),
  received: (queue, id, end) => send({ kind: 'received', queue, id, end }),
};

class SoakModule {}
const { root, queues, providers } = optionsOf(plan, witness, app);
Module({
  imports: [
    QueueModule.forRoot({ connection, prefix, shutdown: { timeout: '3s', grace: '100ms' }, ...root }),
    QueueModule.registerQueue(...queues),
  ],
  providers,
})(SoakModule);

// A process whose parent has gone must not run on.
process.on('disconnect', () => process.exit(1));
const context = await NestFactory.createApplicationContext(SoakModule, { logger: false });
process.on('SIGTERM', () => {
  void context.close().then(() => process.send!({ kind: 'ready', at: sharedNow() }, () => process.exit(0)));
});
send({ kind: 'ready' });
