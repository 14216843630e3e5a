import { describe, expect, it } from 'vitest';
import { InvalidOptionError, ProcessNotFoundError } from '#lib/errors.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { bootQueue, describeOnRedis, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();
const root = { lease: { duration: '1s' } } as const;

const worker = () => bootQueue(redis, { root, handlers: { job: () => undefined }, watch: false });
const inspect = (app: Awaited<ReturnType<typeof worker>>) => app.get(QueueInspector);
const stateOf = (app: Awaited<ReturnType<typeof worker>>) => app.runtime.workers[0]!.state;

describe('orders to a process', () => {
  it('pause and resume it, and its record shows that', async () => {
    const app = await worker();
    const inspector = inspect(app);
    await until(async () => (await inspector.workers()).length === 1, PATIENT);
    const { id, host, pid } = (await inspector.workers())[0]!;
    expect(await inspector.processes.pause({ process: id, by: 'ada' })).toEqual([{ id, host, pid }]);
    await until(() => stateOf(app) === 'paused', PATIENT);
    await until(async () => (await inspector.workers())[0]?.state === 'paused', PATIENT);
    await inspector.processes.resume({ process: `${host}:${pid}`, queue: 'work' });
    await until(() => stateOf(app) === 'running', PATIENT);
    await app.queue.add('job', null);
    await until(async () => (await app.queue.counts()).waiting === 0, PATIENT);
    await inspector.processes.quiet({ host });
    await until(() => stateOf(app) === 'quiet', PATIENT);
    const orders = app.logs.lines.map(({ text }) => text).filter((text) => text.startsWith('order'));
    expect(orders).toEqual([
      'order of "ada" to this process: pause all queues',
      "order to this process: resume queue 'work'",
      'order to this process: quiet all queues',
    ]);
  });

  it('end with the process', async () => {
    const app = await worker();
    await until(async () => (await inspect(app).workers()).length === 1, PATIENT);
    await inspect(app).processes.pause({ queue: 'work' });
    await until(() => stateOf(app) === 'paused', PATIENT);
    await app.app.close();
    const next = await worker();
    await until(async () => (await inspect(next).workers()).length === 1, PATIENT);
    expect(stateOf(next)).toBe('running');
  });

  it('are refused if no process fits or none is named', async () => {
    const { processes } = inspect(await worker());
    await expect(processes.pause({ process: 'nobody:1' })).rejects.toThrow(
      new ProcessNotFoundError({ process: 'nobody:1' }, false),
    );
    await expect(processes.quiet({ host: 'nowhere', queue: 'work' })).rejects.toThrow(
      "host 'nowhere', queue 'work': no such worker process is alive",
    );
    await expect(processes.pause({})).rejects.toThrow(InvalidOptionError);
    // Without the field, the order would go to more processes or queues.
    for (const field of ['process', 'host', 'queue'])
      for (const kind of ['pause', 'resume', 'quiet'] as const)
        await expect(processes[kind]({ host: 'here', queue: 'work', [field]: undefined })).rejects.toThrow(
          `processes.${kind}().${field} must be a value, or left out to mean all, got undefined`,
        );
  });
});

describeOnRedis('orders to one of several processes', () => {
  it('do not affect other processes, and refuse a process of an older version', async () => {
    const [one, other] = [await worker(), await worker()];
    const inspector = inspect(one);
    await until(async () => (await inspector.workers()).length === 2, PATIENT);
    const [first] = await inspector.workers();
    await inspector.processes.pause({ process: first!.id });
    await until(() => [stateOf(one), stateOf(other)].includes('paused'), PATIENT);
    await one.queue.add('job', null);
    await until(async () => (await one.queue.counts()).waiting === 0, PATIENT);
    expect([stateOf(one), stateOf(other)].toSorted()).toEqual(['paused', 'running']);
    // The record of a process that writes no `obeyed`.
    const { id, host } = first!;
    const key = `{${redis.prefix}}:processes`;
    const info = JSON.parse((await redis.admin.hget(`${key}:info`, id))!) as Record<string, unknown>;
    await redis.admin.hset(
      `${key}:info`,
      'older',
      JSON.stringify({ ...info, id: 'older', obeyed: undefined }),
    );
    await redis.admin.zadd(key, Date.now() + 60_000, 'older');
    await expect(inspector.processes.pause({ process: 'older', host })).rejects.toThrow(
      'runs a version of godwit that takes no orders',
    );
    await redis.admin.zrem(key, 'older');
    await redis.admin.hdel(`${key}:info`, 'older');
  });
});
