import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { enqueue } from '#lib/engine/scripts/adds.js';
import type { Job } from '#lib/job/job.js';
import { atEnd } from '../support/cleanup.js';
import { startCut } from '../support/cut.js';
import { itOnRedis, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';
import { bootWorking, drained, emptied } from './support/app.js';

const redis = useRedis({ leaves: ['active', 'worker', 'workers', 'processes', 'queues'] });
const CHILD = fileURLToPath(new URL('./children/adding-items.cjs', import.meta.url));

/** The items of each job, as its handler saw them. */
function collected() {
  const byJob = new Map<string, string[]>();
  const seen: string[][] = [];
  return {
    run: ({ id, data }: Job<string[]>) => {
      seen.push(data);
      byJob.set(id, data);
    },
    seen,
    /** Every item, as often as jobs contain it. */
    items: () => [...byJob.values()].flat(),
  };
}

it('has each item in one job when the answers to its adds are lost', async () => {
  const cut = await startCut(redis.url);
  const { run, items, seen } = collected();
  const app = await bootWorking({ connection: cut.url, prefix: redis.prefix }, run as never);
  const lost = cut.cutOnReply(
    (words) => /^eval/i.test(words[0]!) && [enqueue.sha, enqueue.text].includes(words[1]!),
    6,
  );
  const all = Array.from({ length: 400 }, (_, i) => String(i));
  const aggregate = { key: 'all', maxDelay: '20ms', maxSize: 9 };
  for (let i = 0; i < all.length; i += 20) {
    const some = all.slice(i, i + 20);
    // oxlint-disable-next-line no-await-in-loop -- each call has some
    await Promise.all(some.map((data) => app.queue.add('job', data, { aggregate })));
  }
  await lost.done;
  await drained(app);
  expect(items().toSorted()).toEqual(all.toSorted());
  expect(Math.max(...seen.map((data) => data.length))).toBeLessThanOrEqual(9);
});

itOnRedis('has each stored item in one job when its producers are killed', async () => {
  const { run, items } = collected();
  const root = { connection: redis.url, prefix: redis.prefix } as const;
  const app = await bootWorking(root, run as never);
  const stored: string[] = [];
  const children = ['a', 'b', 'c'].map((name) => {
    const child = spawn(process.execPath, [CHILD, redis.url, redis.prefix, name]);
    atEnd(() => void child.kill('SIGKILL'));
    child.stdout.setEncoding('utf8').on('data', (text: string) => stored.push(text));
    return child;
  });
  const lines = () =>
    stored
      .join('')
      .split('\n')
      .filter((line) => line !== '');
  await until(() => lines().length > 1_500, { ...PATIENT, what: () => `${lines().length} items are stored` });
  for (const child of children) {
    child.kill('SIGKILL');
    // oxlint-disable-next-line no-await-in-loop
    await once(child, 'close');
  }
  await emptied(app.queue);
  const found = items();
  expect(new Set(found).size).toBe(found.length);
  const there = new Set(found);
  expect(lines().filter((line) => !there.has(line))).toEqual([]);
  expect((await app.queue.audit()).violations).toEqual([]);
});
