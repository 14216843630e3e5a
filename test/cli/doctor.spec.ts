import { afterEach, describe, expect, it, vi } from 'vitest';
import { RedisAdmin } from '#lib/engine/redis-admin.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { UnrecoverableError } from '#lib/errors.js';
import { runCleanup } from '../support/cleanup.js';
import { startCut } from '../support/cut.js';
import { bootQueue, PATIENT, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';
import { godwitOn, jsonOf, runOn, type Ended } from './support.js';

const server = useServer();
const redis = useRedis({ server, rights: 'all', refusals: true, leaves: ['workers', 'active', 'processes'] });

interface Finding {
  readonly level: 'ok' | 'warn' | 'fail';
  readonly what: string;
  readonly text: string;
}

afterEach(async () => {
  await runCleanup();
  const healthy = ['maxmemory-policy', 'noeviction', 'maxmemory', '0', 'min-replicas-to-write', '0'] as const;
  await redis.admin.config('SET', ...healthy);
  await redis.admin.flushall();
});

const ASKED = ['doctor', '--deep', '--json'] as const;

const doctor = async () => reported(await runOn(redis, ...ASKED));

/** As a process of its own, which would print warnings too. */
const doctorProcess = async (url = redis.url) =>
  reported(await godwitOn({ url, prefix: redis.prefix }, ...ASKED).result());

function reported(ran: Ended) {
  const { code, json } = jsonOf(ran);
  return { code, findings: json as Finding[] };
}

const key = (suffix: string) => `{${redis.prefix}:work}:${suffix}`;

interface Planted {
  readonly fault: string;
  /** Returns the URL to ask with, if it is another. */
  readonly plant: (app: QueueApp) => Promise<string | void>;
  readonly level: 'warn' | 'fail';
  readonly what: RegExp;
  readonly text: RegExp;
  readonly works?: boolean;
}

const PLANTED: readonly Planted[] = [
  {
    fault: 'a policy that evicts keys',
    plant: async () => void (await redis.admin.config('SET', 'maxmemory-policy', 'allkeys-lru')),
    level: 'fail',
    what: /^evicts-keys$/,
    text: /set it to noeviction/,
  },
  {
    fault: 'an act on many jobs that was interrupted',
    plant: async ({ queue, get }) => {
      await queue.addBulk(Array.from({ length: 5 }, () => ({ name: 'x', data: null })));
      const { id } = await queue.bulkActs.start(
        'remove',
        { state: 'waiting' },
        { rate: { max: 1, per: '1h' } },
      );
      const { bulkActs } = get<QueueEngine>(QUEUE_ENGINE);
      await until(async () => {
        const before = (await bulkActs.list()).get(id)!;
        const record = JSON.parse(before) as { updatedAt: number };
        const after = { ...record, runner: 'gone', updatedAt: record.updatedAt - 60_000 };
        return bulkActs.put({ id, queue: 'work', before, after: JSON.stringify(after) });
      }, PATIENT);
    },
    level: 'warn',
    what: /^queue work$/,
    text: /^an act on many jobs \(remove\) was interrupted after \d of 5 jobs: continue or stop it /,
  },
  {
    fault: 'writes that are refused',
    plant: async () => void (await redis.admin.config('SET', 'min-replicas-to-write', '3')),
    level: 'fail',
    what: /^writes$/,
    text: /NOREPLICAS.*min-replicas-to-write/,
  },
  {
    fault: 'a memory that is nearly full',
    plant: async () => {
      const used = Number(/^used_memory:(\d+)/m.exec(await redis.admin.info('memory'))![1]);
      await redis.admin.config('SET', 'maxmemory', String(Math.round(used * 1.1)));
    },
    level: 'fail',
    what: /^memory$/,
    text: /^\d\d % of maxmemory is used/,
  },
  {
    fault: 'a user without rights',
    plant: async () => {
      await redis.admin.call(
        'ACL',
        'SETUSER',
        'poor',
        'reset',
        'on',
        '>x',
        '~*',
        '+info',
        '+client',
        '+hello',
      );
      return redis.url.replace('redis://', 'redis://poor:x@').replace(/:x@.*@/, ':x@');
    },
    level: 'fail',
    what: /^(Redis|rights)$/,
    text: /NOPERM|no permissions|refused/,
  },
  {
    fault: 'a queue that nobody works on',
    plant: async ({ queue }) => void (await queue.add('x', null)),
    level: 'fail',
    what: /^queue work$/,
    text: /^1 job waits and no process works on it: start a worker whose providers have its processor$/,
  },
  {
    fault: 'a queue that is paused',
    plant: async ({ queue }) => void (await queue.pause()),
    level: 'warn',
    what: /^queue work$/,
    text: /^is paused; godwit resume work$/,
  },
  {
    fault: 'dead jobs',
    works: true,
    plant: async ({ queue }) => {
      await queue.add('bad', null);
      await until(async () => (await queue.counts()).dead === 1, PATIENT);
    },
    level: 'warn',
    what: /^queue work$/,
    text: /^1 dead job; godwit dead work$/,
  },
  {
    fault: 'a worker that went silent',
    plant: async () => void (await redis.admin.zadd(key('workers'), 1, 'gone')),
    level: 'fail',
    what: /^queue work$/,
    text: /^1 worker went silent/,
  },
  {
    fault: 'a schedule that is late',
    plant: async ({ queue }) => {
      await queue.schedules.upsert('late', { every: '1h' }, { name: 'x' });
      await redis.admin.zadd(key('upcoming'), 1, 'late');
    },
    level: 'fail',
    what: /^queue work$/,
    text: /^1 schedule is late \(late\): start a worker$/,
  },
  {
    fault: 'schedules that are paused',
    plant: async ({ queue }) => {
      for (const id of ['daily', 'hourly']) {
        // oxlint-disable-next-line no-await-in-loop -- in this order
        await queue.schedules.upsert(id, { every: '1h' }, { name: 'x' });
        // oxlint-disable-next-line no-await-in-loop -- the same
        await queue.schedules.pause(id);
      }
    },
    level: 'warn',
    what: /^queue work$/,
    text: /^2 schedules are paused \((daily|hourly)\); godwit schedules work$/,
  },
  {
    fault: 'a job without a body',
    plant: async () => void (await redis.admin.lpush(key('wait'), 'ghost')),
    level: 'fail',
    what: /^audit work$/,
    text: /^1 problem, such as: .*ghost.*; godwit repair work$/,
  },
  {
    fault: 'processes of different versions',
    works: true,
    plant: async () => {
      const info = `{${redis.prefix}}:processes:info`;
      const [[id, record] = []] = await until(async () => {
        const found = Object.entries(await redis.admin.hgetall(info));
        return found.length > 0 ? found : undefined;
      }, PATIENT);
      const ends = await redis.admin.zscore(`{${redis.prefix}}:processes`, id!);
      const other = record!.replaceAll(id!, 'other').replace(/"0\.1\.0"/, '"0.0.9"');
      await redis.admin.hset(info, 'other', other);
      await redis.admin.zadd(`{${redis.prefix}}:processes`, Number(ends) + 60_000, 'other');
    },
    level: 'warn',
    what: /^workers$/,
    text: /different versions: .*0\.0\.9.*finish the rollout$/,
  },
];

describe('doctor finds what is planted', () => {
  it.each(PLANTED)('$fault', async ({ plant, level, what, text, works = false }) => {
    const app = await bootQueue(redis, {
      watch: false,
      ...(works && {
        handlers: {
          bad: () => {
            throw new UnrecoverableError('no');
          },
        },
      }),
    });
    const isFault = (one: Finding) => one.level === level && what.test(one.what) && text.test(one.text);
    // A queue is known from its first job on.
    await app.queue.add('later', null, { delay: '1h' });
    const before = await doctor();
    expect(before.findings.filter(isFault)).toEqual([]);
    const url = (await plant(app)) ?? undefined;
    const after = await (url === undefined ? doctor() : doctorProcess(url));
    expect(after.findings.filter(isFault), JSON.stringify(after.findings)).toHaveLength(1);
    const hasFailed = after.findings.some((one) => one.level === 'fail');
    expect([level, after.code]).toEqual([level, hasFailed ? 4 : 0]);
  });

  it('a prefix that is not in use', async () => {
    const { code, findings } = await doctorProcess();
    expect(code).toBe(0);
    expect(findings).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        what: 'queues',
        text: expect.stringMatching(/check --prefix/),
      }),
    );
  });

  it('on a slow line it measures fewer round trips, and keeps the order of queues', async () => {
    const names = Array.from({ length: 20 }, (_, at) => `q${String(at).padStart(2, '0')}`);
    const { producer } = await bootQueue(redis, { queues: names.map((name) => ({ name })), watch: false });
    await Promise.all(names.map((name) => producer.queue(name).add('job', null)));
    const read = vi.spyOn(RedisAdmin.prototype, 'lastFull');
    const cut = await startCut(redis.url);
    cut.delay(75);
    const { out } = await runOn({ url: cut.url, prefix: redis.prefix }, 'doctor', '--json');
    const findings = JSON.parse(out) as Finding[];
    expect(findings).toContainEqual(
      expect.objectContaining({
        what: 'round trip',
        level: 'warn',
        text: expect.stringMatching(/^p50 [1-9]\d\d/),
      }),
    );
    // One for each queue, and those that are measured in a second.
    expect(read.mock.calls.length).toBeLessThan(names.length + 10);
    read.mockRestore();
    const queues = findings.map(({ what }) => what).filter((what) => what.startsWith('queue q'));
    expect(queues).toEqual(names.map((name) => `queue ${name}`));
  });
});
