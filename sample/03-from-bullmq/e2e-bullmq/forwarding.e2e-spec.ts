import { BullModule } from '@nestjs/bullmq';
import { QueueModule } from 'godwit';
import { expect, test } from 'vitest';
import { bootApp } from '../../../test/support/app.js';
import { useRedis } from '../../../test/support/redis.js';
import { useServer } from '../../../test/support/server.js';
import { until } from '../../../test/support/wait.js';
import { ForwardProcessor } from '../moving/forward.processor.js';
import { newSide, oldQueue } from './support/rig.js';

const server = useServer();
const redis = useRedis({ server, rights: 'all' });
const PATIENT = { timeout: 15_000 };

/** The application between the two: it adds to the new queue, and forwards what the old one still has. */
function bootForwarding() {
  return bootApp({
    imports: [
      BullModule.forRoot({ connection: { url: server.url } }),
      BullModule.registerQueue({ name: 'audio' }),
      QueueModule.forRoot({ connection: server.url, prefix: redis.prefix, role: 'producer' }),
      QueueModule.registerQueue({ name: 'audio' }),
    ],
    providers: [ForwardProcessor],
  });
}

test('every job of the old queue is handed on when it is due, and runs here once', async () => {
  const from = oldQueue(6, server.url);
  const added = await from.addBulk([
    ...Array.from({ length: 100 }, () => ({ name: 'transcode', data: { file: 'a.mp3' } })),
    ...Array.from({ length: 5 }, () => ({ name: 'transcode', data: {}, opts: { delay: 500 } })),
  ]);
  const { runs } = await newSide(redis);
  await bootForwarding();
  await until(() => runs.length >= added.length, PATIENT);
  expect(runs.toSorted()).toEqual(added.map(({ id }) => id!).toSorted());
  expect(await from.getFailedCount()).toBe(0);
  expect(await from.getDelayedCount()).toBe(0);
});

test('a job that BullMQ hands out a second time is the same job here, also when it has run already', async () => {
  const from = oldQueue(6, server.url);
  const job = await from.add('transcode', { file: 'a.mp3' }, { jobId: 'twice' });
  const { runs } = await newSide(redis);
  await bootForwarding();
  await until(() => runs.includes('twice'), PATIENT);
  await until(async () => (await job.getState()) === 'completed', PATIENT);
  await job.retry('completed');
  await until(async () => (await job.getState()) === 'completed', PATIENT);
  expect(runs).toEqual(['twice']);
});

test('one whose id is taken by another job here is not lost: it ends failed there, with the reason', async () => {
  const from = oldQueue(6, server.url);
  const { audio } = await newSide(redis, 'producer');
  await audio.add('transcode', { file: 'mine.mp3' }, { id: 'taken' });
  const job = await from.add('transcode', { file: 'old.mp3' }, { jobId: 'taken' });
  await bootForwarding();
  await until(async () => (await job.getState()) === 'failed', PATIENT);
  expect((await from.getJob('taken'))?.failedReason).toContain('another job has the id "taken"');
});
