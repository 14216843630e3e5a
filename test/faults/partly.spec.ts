import { expect, it } from 'vitest';
import type { AnyScript } from '#lib/engine/script.js';
import { cancel, promoteNow, remove } from '#lib/engine/scripts/admin.js';
import { clean, retryDead } from '#lib/engine/scripts/upkeep.js';
import type { Queue } from '#lib/index.js';
import { createProducer } from '#lib/subpaths/standalone.js';
import { startCut } from '../support/cut.js';
import { die } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { bootWorking, emptied } from './support/app.js';

// A call for many jobs works in steps. If a later step fails, its error must not say that nothing was changed.

const redis = useRedis();
const JOBS = 250;

type Act = (queue: Queue) => Promise<unknown>;

it.each<[call: string, script: AnyScript, nth: number, act: Act]>([
  ['remove all', clean, 2, (queue) => queue.remove({ state: 'delayed' })],
  ['remove some', remove, 2, (queue) => queue.remove({ state: 'delayed', contains: 'late' })],
  ['cancel', cancel, 2, (queue) => queue.cancel({ state: 'delayed' })],
  ['promote', promoteNow, 50, (queue) => queue.promote({})],
  ['dead.retry of all', retryDead, 2, (queue) => queue.dead.retry({ name: 'die' })],
  ['dead.retry of some', retryDead, 2, (queue) => queue.dead.retry({ contains: 'die' })],
])('%s: the error says that a part was done', async (_, script, nth, act) => {
  const app = await bootWorking(
    { connection: redis.url, prefix: redis.prefix },
    ({ name }) => name === 'die' && die(),
  );
  const name = script === retryDead ? 'die' : 'late';
  const options = { ...(name === 'late' && { delay: '1h' }), attempts: 1 } as const;
  await app.queue.addBulk(Array.from({ length: JOBS }, () => ({ name, data: null, options })));
  if (name === 'die') await emptied(app.queue);
  const cut = await startCut(redis.url);
  const producer = createProducer({ connection: cut.url, prefix: redis.prefix });
  const queue = producer.queue(app.queue.name);
  const before = (await queue.counts())[name === 'die' ? 'dead' : 'delayed'];
  expect(before).toBe(JOBS);
  let calls = 0;
  const isScript = ([command, sha]: readonly string[]) =>
    /^eval/i.test(command!) && [script.sha, script.text].includes(sha!) && ++calls === nth;
  const lost = cut.cutOnReply(isScript);
  const error = await act(queue).then(
    () => 'it was done',
    (reason: unknown) => reason,
  );
  await lost.done;
  expect(error).toMatchObject({
    code: 'GODWIT_REDIS_UNAVAILABLE',
    applied: 'partly',
    message: expect.stringMatching(/^[a-z.]+: .*; a part of it took effect$/i),
  });
  await producer.close();
});
