import { expect, test } from 'vitest';
import { useRedis } from '../../../test/support/redis.js';
import { startSample } from './support/sample.js';

const redis = useRedis();

test('what is paid is shipped by a saga, and everybody hears of it in their own way', async () => {
  const sample = await startSample(redis);
  await sample.place('7', 990);
  await sample.written("@OnEvent('queue.*.completed'): ship-7 of orders took N ms");
  expect(sample.lines.toSorted()).toEqual([
    '@CommandHandler: order 7 is to be shipped',
    "@OnEvent('queue.*.completed'): charge-7 of orders took N ms",
    "@OnEvent('queue.*.completed'): ship-7 of orders took N ms",
    "@OnQueueEvent('active'): charge-7, attempt 1",
    "@OnQueueEvent('active'): ship-7, attempt 1",
  ]);
});

test('what is declined reaches the handler of the event bus, and is not shipped', async () => {
  const sample = await startSample(redis);
  await sample.place('8', 99_000);
  await sample.written('@EventsHandler(JobDied): charge-8: the card is declined');
  await sample.place('9', 990);
  await sample.written("@OnEvent('queue.*.completed'): ship-9 of orders took N ms");
  expect(sample.lines.filter((line) => line.includes('ship-8'))).toEqual([]);
});

test('two processes both hear of a payment, and ship once', async () => {
  const [one, other] = await Promise.all([startSample(redis), startSample(redis)]);
  await one.place('10', 990);
  const shipped = "@OnEvent('queue.*.completed'): ship-10 of orders took N ms";
  await Promise.all([one.written(shipped), other.written(shipped)]);
  const orders = [...one.lines, ...other.lines].filter((line) => line.startsWith('@CommandHandler'));
  expect(orders).toEqual(['@CommandHandler: order 10 is to be shipped']);
});
