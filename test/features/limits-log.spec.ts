import { describe, expect, it } from 'vitest';
import type { Job } from '#lib/job/job.js';
import type { QueueModuleOptions, QueueOptions } from '#lib/options/module-options.js';
import type { Queue } from '#lib/producer/queue.js';
import { bootQueue, isOver, PATIENT, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

interface Kind {
  readonly root?: QueueModuleOptions;
  readonly queue?: Omit<QueueOptions, 'name'>;
  readonly options?: { readonly group: string };
  readonly before?: (queue: Queue) => Promise<unknown>;
}

const rate = { max: 1, per: '1h' } as const;
const group = { options: { group: 'a' } } as const;
const kinds: Readonly<Record<string, Kind>> = {
  'a concurrency': { queue: { limits: { concurrency: 1 } } },
  'a concurrency of a name': { queue: { limits: { names: { job: { concurrency: 1 } } } } },
  'a concurrency of groups': { queue: { groups: { concurrency: 1 } }, ...group },
  'strict order': { queue: { groups: { order: 'strict' } }, ...group },
  'a paused group': { before: (queue) => queue.group('a').pause(), ...group },
  'a rate': { queue: { limits: { rate } } },
  'a rate of groups': { queue: { groups: { rate } }, ...group },
  'a hold': { before: (queue) => queue.limits.hold('1h') },
  'a shared concurrency': { root: { limits: { api: { concurrency: 1 } } }, queue: { uses: ['api'] } },
  'a shared rate': { root: { limits: { api: { rate } } }, queue: { uses: ['api'] } },
};

const linesOf = ({ logs }: QueueApp) =>
  logs.lines.map(({ text }) => text).filter((text) => text.includes('limits delay'));

describe.each(['redis', 'memory'] as const)('the log (%s)', (engine) => {
  const boot = ({ root = {}, queue }: Kind, handler: (job: Job) => unknown) =>
    bootQueue(redis, {
      root: engine === 'memory' ? { ...root, connection: 'memory' } : root,
      ...(queue && { queue }),
      handlers: { job: handler },
    });

  it.each(Object.entries(kinds))('says once that %s holds jobs back', async (_, kind) => {
    const gate = latch('the gate');
    const app = await boot(kind, () => gate.promise);
    await kind.before?.(app.queue);
    for (const data of [1, 2, 3]) await app.queue.add('job', data, kind.options);
    await until(() => linesOf(app).length > 0, { ...PATIENT, what: () => 'the line of the log' });
    const timed = kind.queue?.limits?.rate ?? kind.queue?.groups?.rate ?? kind.root;
    const isTimed = timed !== undefined || kind.before?.toString().includes('hold');
    const time = isTimed ? /^queue 'work': limits delay its jobs; the next may start in \d+ ms$/ : /jobs$/;
    expect(linesOf(app)).toEqual([expect.stringMatching(time)]);
    gate.open();
  });

  it('says once that a retry budget is used up', async () => {
    const app = await boot(
      { queue: { limits: { retryBudget: { max: 2, per: '1s' } }, defaults: { attempts: 2, backoff: 1 } } },
      ({ attempt }) => {
        if (attempt === 1) throw new Error('503');
      },
    );
    await app.queue.addBulk([1, 2, 3, 4].map((data) => ({ name: 'job', data })));
    await until(isOver(app), PATIENT);
    const lines = app.logs.lines.map(({ text }) => text).filter((text) => text.includes('retry budget'));
    expect(lines).toEqual(["queue 'work': its retry budget is used up; retries wait"]);
  });

  it.each([
    ['reject', 'adds are rejected'],
    ['wait', 'adds wait for room'],
    ['dropNew', 'new jobs are dropped'],
    ['dropOldest', 'the oldest waiting jobs are removed'],
  ] as const)('says once that a full queue has onFull %s', async (onFull, what) => {
    const timeout = onFull === 'wait' ? { timeout: 50 } : {};
    const app = await boot({ queue: { maxWaiting: { limit: 1, onFull, ...timeout } } }, () => {});
    await app.queue.pause();
    for (const data of [1, 2, 3]) await app.queue.add('job', data).catch(() => {});
    const lines = app.logs.lines.map(({ text }) => text).filter((text) => text.includes(' is full'));
    expect(lines).toEqual([`queue 'work' is full (maxWaiting 1): ${what}`]);
  });
});
