import { expect, it } from 'vitest';
import { bootQueue, type QueueAppOptions } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { runOn } from './support.js';

const redis = useRedis();

const run = (...words: string[]) => runOn(redis, ...words);
const producing = (options: QueueAppOptions = {}) => bootQueue(redis, { watch: false, ...options });

it('schedules shows intervals that are texts and numbers, without rounding', async () => {
  const { queue } = await producing();
  await queue.add('x', null);
  for (const [id, every] of [
    ['text', '1m'],
    ['number', 60_000],
    ['odd', '150m'],
    ['digits', '90000'],
  ] as const)
    await queue.schedules.upsert(id, { every }, { name: 'x' });
  const { out } = await run('schedules');
  for (const line of [
    / text +every 1 m /,
    / number +every 1 m /,
    / odd +every 150 m /,
    / digits +every 90 s /,
  ])
    expect(out).toMatch(line);
});
