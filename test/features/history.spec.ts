import { describe, expect, it } from 'vitest';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { UnrecoverableError } from '#lib/errors.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

const handlers = {
  ok: () => undefined,
  bad: () => {
    throw new UnrecoverableError('never');
  },
  flaky: ({ attempt }: { attempt: number }) => {
    if (attempt === 1) throw new Error('not yet');
  },
};

describe.each(['redis', 'memory'] as const)('forRoot({ history: true }) on %s', (kind) => {
  const connection = kind === 'memory' ? { connection: 'memory' as const } : {};

  it('counts jobs by minute and name, and writes the last counts when the workers stop', async () => {
    const app = await bootQueue(redis, {
      handlers,
      root: { history: true, ...connection },
      watch: false,
    });
    const inspector = app.get(QueueInspector);
    await app.queue.addBulk(['ok', 'ok', 'bad'].map((name) => ({ name, data: null })));
    await app.queue.add('flaky', null, { attempts: 2, backoff: 0 });
    await app.queue.add('flaky', null, { id: 'same', delay: '1h' });
    await app.queue.add('flaky', null, { id: 'same', delay: '1h' });
    await until(async () => (await app.queue.stats()).total.processed === 3, PATIENT);
    await until(async () => (await app.queue.stats()).total.dead === 1, PATIENT);
    expect((await inspector.series('work')).total.completed).toBe(0);
    await app.runtime.stop();
    const { total, byName, points } = await inspector.series('work');
    expect(total).toMatchObject({ added: 5, completed: 3, failed: 2, dead: 1 });
    expect(total.run.count).toBe(5);
    // The second attempt did not wait in line.
    expect(total.wait.count).toBe(4);
    expect(byName['ok']).toMatchObject({ added: 2, completed: 2, failed: 0, dead: 0 });
    expect(byName['bad']).toMatchObject({ added: 1, completed: 0, failed: 1, dead: 1 });
    expect(byName['flaky']).toMatchObject({ added: 2, completed: 1, failed: 1, dead: 0 });
    expect(points.reduce((sum, { completed }) => sum + completed, 0)).toBe(3);
    expect((await inspector.series('work', { name: 'bad' })).total.added).toBe(1);
  });
});

it('writes nothing without it', async () => {
  const app = await bootQueue(redis, { handlers, watch: false });
  await app.queue.add('ok', null);
  await until(async () => (await app.queue.stats()).total.processed === 1, PATIENT);
  await app.runtime.stop();
  expect((await redis.keys()).filter((key) => key.includes(':minutes:'))).toEqual([]);
});
