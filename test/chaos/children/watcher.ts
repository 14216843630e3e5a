import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { QueueEvents, QueueModule, getQueueToken, type Queue, type QueueEvent } from '#lib/index.js';
import { readHistory } from '../../history/recorder.js';
import { MixedClient } from '../mix/client.js';
import { drained } from '../mix/drain.js';
import { MIXED, mixedQueues } from '../mix/queues.js';
import { PREFIX, QUEUE } from '../plan.js';
import { fileLogger, ledger, onTold, plan, recorder, say, tellFigures } from './child.js';

/*
 * A witness of the other side: what the store says happened, told by its events, read by a process that works on nothing.
 * It is never killed, but its connections meet every fault of the others.
 */
/** How long the mixed queues may take to become empty. */
const DRAIN_MS = 60_000;

@Module({
  imports: [
    QueueModule.forRoot({ connection: plan.url, prefix: PREFIX, role: 'producer' }),
    QueueModule.registerQueue({ name: QUEUE }),
    ...mixedQueues(),
  ],
})
class WatcherApp {}

const app = await NestFactory.createApplicationContext(WatcherApp, {
  logger: fileLogger(),
  abortOnError: false,
});
app.enableShutdownHooks();
const events = app.get(QueueEvents);
let lines = '';
let completed = 0;

events.of(QUEUE, { since: '0' }).subscribe(see);
events.status$.subscribe((status) => {
  if (status.state === 'gap') lines += `g ${status.missed ?? -1}\n`;
});
setInterval(flush, 50);
await events.ready(QUEUE);
const mixed = new Map(MIXED.map((name) => [name, app.get<Queue>(getQueueToken(name))]));
// A marker event after all others: when it arrives, all earlier events have arrived.
onTold(async (told) => {
  const queue = app.get<Queue>(getQueueToken(QUEUE));
  if (told.do === 'finish') await queue.pause();
  if (told.do === 'look') {
    await drained(mixed, DRAIN_MS);
    const files = readdirSync(plan.mixed.dir).map((file) => join(plan.mixed.dir, file));
    await new MixedClient(mixed, recorder, plan.mixed.file, plan.seed).lookAtAll(readHistory(files));
    say({ say: 'looked' });
  }
  if (told.do === 'audit') {
    const reports = [];
    for (const each of [queue, ...mixed.values()]) reports.push(await each.audit());
    const checked = reports.reduce((sum, report) => sum + report.checked, 0);
    const violations = reports.flatMap((report) => report.violations.map(({ text }) => text));
    say({ say: 'audited', checked, violations });
  }
});
tellFigures(() => ({ completed }));
say({ say: 'ready' });

function see(event: QueueEvent): void {
  switch (event.type) {
    case 'completed':
      completed += 1;
      lines += `c ${event.jobId}\n`;
      return;
    case 'dead':
      lines += `f ${event.jobId} ${event.reason}\n`;
      return;
    case 'stalled':
      lines += `s ${event.jobId}\n`;
      return;
    case 'paused':
      flush();
      say({ say: 'done' });
      return;
    default:
      return;
  }
}

function flush(): void {
  ledger.write(lines);
  lines = '';
}
