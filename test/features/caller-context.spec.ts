import { AsyncLocalStorage } from 'node:async_hooks';
import { spawnSync } from 'node:child_process';
import { tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { bootQueue, PATIENT, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { collect } from '../support/wait.js';

const redis = useRedis();
const requests = new AsyncLocalStorage<string>();

/** An application that records what its handlers see. */
async function looking(): Promise<{ app: QueueApp; seen: unknown[] }> {
  const seen: unknown[] = [];
  const see = () => void seen.push(requests.getStore());
  return { app: await bootQueue(redis, { handlers: { '*': see } }), seen };
}

const completed = (app: QueueApp, count: number) =>
  app.said.take(count, ({ type }) => type === 'completed', PATIENT);

describe('the AsyncLocalStorage of a request is not visible in handlers', () => {
  it('of jobs that it adds one by one to an idle worker', async () => {
    const { app, seen } = await looking();
    for (let count = 1; count <= 5; count++) {
      await requests.run('of a request', () => app.queue.add('one', count));
      await completed(app, count);
    }
    expect(seen).toEqual(Array(5).fill(undefined));
  });

  it('of jobs that it adds at once, nor of later jobs of other callers', async () => {
    const { app, seen } = await looking();
    await requests.run('of a request', () =>
      Promise.all(Array.from({ length: 40 }, (_, i) => app.queue.add('one', i))),
    );
    await app.queue.addBulk(Array.from({ length: 40 }, (_, i) => ({ name: 'one', data: i })));
    await completed(app, 80);
    expect(seen).toEqual(Array(80).fill(undefined));
  });

  it('of jobs that it resumes', async () => {
    const { app, seen } = await looking();
    await app.queue.pause();
    await app.queue.addBulk([1, 2, 3].map((data) => ({ name: 'one', data })));
    await requests.run('of a request', () => app.queue.resume());
    await completed(app, 3);
    expect(seen).toEqual([undefined, undefined, undefined]);
  });

  it('of jobs of a worker that it stops for a while', async () => {
    const { app, seen } = await looking();
    requests.run('of a request', () => app.runtime.pause('work'));
    await app.queue.addBulk([1, 2, 3].map((data) => ({ name: 'one', data })));
    requests.run('of a request', () => app.runtime.resume('work'));
    await completed(app, 3);
    expect(seen).toEqual([undefined, undefined, undefined]);
  });
});

it('is not visible to other event listeners either, although the request was the first to listen', async () => {
  const app = await bootQueue(redis, { watch: false });
  const seen: unknown[] = [];
  const see = () => void seen.push(requests.getStore());
  const first = requests.run('of a request', () => app.events.of('work').subscribe(see));
  const other = collect(app.events.of('work').pipe(tap(see)));
  await app.events.ready('work');
  await app.queue.add('one', 1);
  await other.take(1, undefined, PATIENT);
  first.unsubscribe();
  expect(seen).toEqual([undefined, undefined]);
});

it('needs no open async resource, which Jest with --detectOpenHandles would report', () => {
  const program = `
    const open = new Map();
    const hook = { init: (id, type) => void open.set(id, type), destroy: (id) => void open.delete(id) };
    require('node:async_hooks').createHook(hook).enable();
    require('godwit');
    setImmediate(() => process.stdout.write([...open.values()].filter((type) => type === 'Godwit').join()));`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' });
  expect({ stdout, stderr, status }).toEqual({ stdout: '', stderr: '', status: 0 });
});
