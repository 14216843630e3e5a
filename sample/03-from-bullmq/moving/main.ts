import { parseArgs } from 'node:util';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Queue as OldQueue } from 'bullmq';
import { type Queue, QueueModule, getQueueToken } from 'godwit';
import { moveJobs } from './move-jobs.js';
import type { OldState } from './old-queue.js';

const USAGE = `node main.js <queue> [--redis redis://localhost:6379] [--from-prefix bull] [--prefix godwit]
                  [--states waiting,prioritized,delayed,failed] [--dry-run]`;
const STATES: readonly string[] = ['waiting', 'prioritized', 'delayed', 'failed'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    redis: { type: 'string', default: process.env.REDIS_URL ?? 'redis://localhost:6379' },
    'from-prefix': { type: 'string', default: 'bull' },
    prefix: { type: 'string', default: 'godwit' },
    states: { type: 'string', default: 'waiting,prioritized,delayed' },
    'dry-run': { type: 'boolean', default: false },
  },
});
const [name] = positionals;
const states = values.states.split(',') as OldState[];
if (name === undefined || states.some((state) => !STATES.includes(state))) {
  console.error(USAGE);
  process.exit(2);
}

@Module({
  imports: [
    // This process only adds jobs and runs none.
    QueueModule.forRoot({ connection: values.redis, prefix: values.prefix, role: 'producer' }),
    QueueModule.registerQueue({ name }),
  ],
})
class MovingModule {}

const app = await NestFactory.createApplicationContext(MovingModule, { logger: ['warn', 'error'] });
const from = new OldQueue(name, { connection: { url: values.redis }, prefix: values['from-prefix'] });
try {
  const { moved, left } = await moveJobs(from, app.get<Queue>(getQueueToken(name)), {
    states,
    dryRun: values['dry-run'],
  });
  console.log(`${moved} ${values['dry-run'] ? 'can be moved' : 'moved'}, ${left.length} left`);
  for (const { id, why } of left) console.log(`  ${id}: ${why}`);
  const rest = await from.getJobCounts('active', 'waiting-children', 'failed');
  console.log(
    `in the old queue: ${rest['active']} running, ${rest['waiting-children']} waiting for children, ${rest['failed']} failed`,
  );
} finally {
  await from.close();
  await app.close();
}
