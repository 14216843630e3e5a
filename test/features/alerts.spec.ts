import { createHmac } from 'node:crypto';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Injectable } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import {
  createAlerts,
  QueueAlerts,
  QueueAlertsModule,
  webhook,
  type Alert,
  type QueueAlertsOptions,
} from '#lib/subpaths/alerts.js';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { UnrecoverableError } from '#lib/errors.js';
import type { Queue } from '#lib/producer/queue.js';
import { atEnd } from '../support/cleanup.js';
import { bootQueue, PATIENT, processorOf, type QueueAppOptions } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();
const CHILD = fileURLToPath(new URL('../faults/children/alerting.cjs', import.meta.url));
const LEASE_MS = 5_000;

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly alert: Alert;
}

/** A receiver of webhooks. `answer` sets the status of each response. */
async function receiver(answer: (count: number) => number | Promise<number> = () => 204) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      received.push({ headers: request.headers, text, alert: JSON.parse(text) as Alert });
      void Promise.resolve(answer(received.length)).then((status) => {
        response.writeHead(status, { location: '/elsewhere' }).end('ignored');
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { received, port, url: `http://127.0.0.1:${port}/hook` };
}

const producing = (options: QueueAppOptions = {}) => bootQueue(redis, { watch: false, ...options });

const withAlerts = (options: QueueAlertsOptions, more: QueueAppOptions = {}) =>
  producing({ ...more, imports: [QueueAlertsModule.forRoot({ interval: '1s', ...options })] });

async function childOf(port: number): Promise<ChildProcess> {
  const child = fork(CHILD, [redis.url, redis.prefix, String(port)]);
  atEnd(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  await once(child, 'message');
  return child;
}

const leaderOf = () => redis.admin.hget(`{${redis.prefix}}:alerts`, 'owner');

describe('rules', () => {
  it('fire for their value, and are resolved', async () => {
    const heard: Alert[] = [];
    const end = latch('the end of the job');
    const app = await withAlerts(
      {
        rules: [
          { rule: 'backlog', limit: 1, name: 'many' },
          { rule: 'oldestWaiting', limit: 500 },
          { rule: 'dead', limit: 1 },
          { rule: 'deadRate', limit: 0 },
          { rule: 'failureRatio', limit: 0.5, min: 2 },
          { rule: 'noWorkers', for: 0, severity: 'critical' },
          { rule: 'paused' },
          { rule: 'scheduleLag', limit: '1m' },
          { rule: 'longestRun', limit: 500, queues: ['work'] },
          { rule: 'stalled' },
          { rule: 'memory', limit: 0.9 },
          { rule: 'backlog', limit: 0, name: 'elsewhere', queues: ['other'] },
        ],
        notify: (alert) => heard.push(alert),
      },
      {
        queues: [{ name: 'lonely' }],
        handlers: {
          slow: () => end.promise,
          bad: () => {
            throw new UnrecoverableError('no');
          },
        },
      },
    );
    const firing = (rule: string, queue: string) =>
      until(() => heard.find((one) => one.name === rule && one.queue === queue && one.state === 'firing'), {
        ...PATIENT,
        what: () =>
          `${rule} of ${queue}: ${JSON.stringify(heard.map(({ id }) => id))} ${app.logs.complaints.join('; ')}`,
      });
    // Counters of failures are compared, so the rule must have looked once before.
    await until(leaderOf, PATIENT);
    await app.queue.add('slow', null);
    await firing('longestRun', 'work');
    await app.queue.add('bad', 1);
    await until(async () => (await app.queue.counts()).dead === 1, PATIENT);
    await app.queue.add('bad', 2);
    await app.queue.schedules.upsert('late', { every: '1h' }, { name: 'slow' });
    for (const rule of ['dead', 'deadRate', 'failureRatio']) await firing(rule, 'work');
    const lonely = app.queueOf('lonely');
    await lonely.pause();
    await lonely.addBulk([1, 2].map((data) => ({ name: 'x', data })));
    await lonely.schedules.upsert('late', { every: '1h' }, { name: 'x' });
    await redis.admin.zadd(`{${redis.prefix}:lonely}:upcoming`, 1, 'late');
    await redis.admin.zadd(`{${redis.prefix}:lonely}:workers`, 1, 'gone');
    for (const rule of ['many', 'oldestWaiting', 'noWorkers', 'paused', 'scheduleLag', 'stalled'])
      await firing(rule, 'lonely');
    expect(heard.find(({ rule, queue }) => rule === 'noWorkers' && queue === 'lonely')).toMatchObject({
      severity: 'critical',
      text: 'queue "lonely": has jobs, and no process claims them',
      source: null,
    });
    expect(heard.filter(({ name }) => name === 'elsewhere' || name === 'memory')).toEqual([]);
    const alerts = app.get(QueueAlerts);
    const names = async () => (await alerts.firing()).map(({ name, queue }) => `${name} ${queue}`);
    expect(await names()).toContain('paused lonely');
    await lonely.resume();
    await until(() => heard.find(({ name, state }) => name === 'paused' && state === 'resolved'), PATIENT);
    expect(await names()).not.toContain('paused lonely');
    await redis.admin.zrem(`{${redis.prefix}:lonely}:workers`, 'gone');
    end.open();
    const ids = heard.map(({ id, state }) => `${id} ${state}`);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('fire for what flow control stops: a breaker of one or of several queues, a full queue, a stopped group', async () => {
    const heard: Alert[] = [];
    const breaker = { failures: 2, ratio: 0.5, openFor: '1h' };
    const dies = () => {
      throw new Error('no');
    };
    const app = await withAlerts(
      {
        rules: [{ rule: 'breakerOpen' }, { rule: 'full' }, { rule: 'stoppedGroups' }],
        notify: (alert) => heard.push(alert),
      },
      {
        root: { limits: { api: { breaker } } },
        queue: { limits: { breaker }, groups: { order: 'strict', onDead: 'block' } },
        queues: [
          { name: 'caller', uses: ['api'], maxWaiting: { limit: 1 } },
          { name: 'other', uses: ['api'] },
          { name: 'calm', limits: { breaker } },
        ],
        handlers: { bad: dies },
        providers: [processorOf(['caller', 'other'], { bad: dies, waits: () => undefined })],
      },
    );
    const firing = async (state: Alert['state'], ...names: readonly string[]) => {
      const found = () =>
        heard.filter((one) => one.state === state).map(({ rule, queue }) => `${rule} ${queue ?? ''}`);
      await until(() => names.every((name) => found().includes(name)), {
        ...PATIENT,
        what: () => JSON.stringify(heard),
      });
    };
    for (const group of ['a', 'b']) await app.queue.add('bad', null, { group, attempts: 1 });
    await firing('firing', 'breakerOpen work', 'stoppedGroups work');
    const caller = app.queueOf('caller');
    await app.queueOf('other').add('waits', 1);
    for (const job of [1, 2]) {
      await caller.add('bad', job, { attempts: 1 });
      await until(async () => (await caller.counts()).dead === job, PATIENT);
    }
    await firing('firing', 'breakerOpen caller', 'breakerOpen other');
    await caller.add('waits', 3);
    await expect(caller.add('waits', 4)).rejects.toMatchObject({ code: 'GODWIT_QUEUE_FULL' });
    await firing('firing', 'full caller');
    expect(heard.find(({ rule }) => rule === 'stoppedGroups')).toMatchObject({ value: 2, unit: 'groups' });
    expect(heard.filter(({ queue }) => queue === 'calm')).toEqual([]);
    await app.queue.limits.release();
    await caller.limits.shared('api').release();
    await firing('resolved', 'breakerOpen work', 'breakerOpen other', 'full caller');
  });

  it('are evaluated in memory too, with options from a factory', async () => {
    @Injectable()
    class Pager {
      readonly heard: string[] = [];
    }
    const app = await producing({
      root: { connection: 'memory' },
      providers: [],
      imports: [
        QueueAlertsModule.forRootAsync({
          imports: [{ module: class PagerModule {}, providers: [Pager], exports: [Pager] }],
          inject: [Pager],
          useFactory: (pager: Pager) => ({
            interval: '1s',
            rules: [{ rule: 'backlog', limit: 0 }],
            notify: ({ text }: Alert) => pager.heard.push(text),
          }),
        }),
      ],
    });
    await app.queue.add('x', null);
    await until(() => app.get(Pager).heard.length > 0, PATIENT);
    expect(app.get(Pager).heard).toEqual(['queue "work": 1 waiting job (limit 0)']);
  });

  it('continue after notify has failed, and after Redis refused them', async () => {
    let count = 0;
    const heard: Alert[] = [];
    const { queue, logs } = await withAlerts({
      rules: [{ rule: 'backlog', limit: 0 }],
      notify: [
        (alert) => {
          count += 1;
          if (count === 1) throw new Error('the pager is out');
          if (count === 2) return Promise.reject(new Error('still out'));
          return heard.push(alert);
        },
      ],
    });
    await redis.admin.set(`{${redis.prefix}}:alerts`, 'of another program');
    await queue.add('x', null);
    await until(() => logs.complaints.join('\n').includes('the rules could not be evaluated'), PATIENT);
    await redis.admin.del(`{${redis.prefix}}:alerts`);
    await until(() => heard.length === 1, PATIENT);
    const undelivered = logs.complaints.filter((line) => line.includes('could not be delivered'));
    expect(undelivered).toEqual([
      expect.stringMatching(/backlog:work:\d+ could not be delivered: the pager is out/),
    ]);
    const again = 'alerts are delivered again, after 2 failed calls';
    await until(() => logs.lines.some(({ level, text }) => level === 'log' && text === again), PATIENT);
    expect(count).toBe(3);
  });

  it('are not called undelivered if only Redis refused to store that they were delivered', async () => {
    const [key, aside] = [`{${redis.prefix}}:alerts`, `{${redis.prefix}}:aside`];
    let count = 0;
    const { queue, logs } = await withAlerts({
      rules: [{ rule: 'backlog', limit: 0 }],
      notify: async () => {
        count += 1;
        await redis.admin.rename(key, aside);
        await redis.admin.set(key, 'of another program');
      },
    });
    await queue.add('x', null);
    await logs.complaint(/the rules could not be evaluated/);
    await redis.admin.del(key);
    await redis.admin.rename(aside, key);
    await until(async () => !(await redis.admin.hget(key, 'state'))!.includes('"undelivered"'), PATIENT);
    expect(count).toBe(1);
    expect(logs.complaints.join('\n')).not.toContain('could not be delivered');
  });

  it('are evaluated for the other queues while one cannot be read, whose alerts stay', async () => {
    const heard: string[] = [];
    const { app, queue, logs } = await withAlerts(
      {
        rules: [{ rule: 'backlog', limit: 0 }],
        notify: ({ state, queue: name }) => heard.push(`${state} ${name}`),
      },
      { queues: [{ name: 'broken' }] },
    );
    const broken = app.get<Queue>(getQueueToken('broken'));
    await broken.add('x', null);
    await until(() => heard.length === 1, PATIENT);
    const dead = `{${redis.prefix}:broken}:dead`;
    await redis.admin.set(dead, 'of another program');
    await logs.complaint(/the rules could not be evaluated for 1 queue: queue 'broken': counts: .*WRONGTYPE/);
    const { id } = await queue.add('x', null);
    await until(() => heard.length === 2, PATIENT);
    await queue.remove(id);
    await until(() => heard.length === 3, PATIENT);
    await redis.admin.del(dead);
    await broken.remove({ state: 'waiting' });
    await until(() => heard.length === 4, PATIENT);
    expect(heard).toEqual(['firing broken', 'firing work', 'resolved work', 'resolved broken']);
  });
});

describe('notify', () => {
  it('is called with the end of an alert that ended while it ran', async () => {
    const heard: string[] = [];
    const slow = latch('the answer of the receiver');
    const app = await withAlerts({
      rules: [{ rule: 'backlog', limit: 0 }],
      notify: async ({ state }) => {
        heard.push(state);
        await slow.promise;
      },
    });
    const { id } = await app.queue.add('x', null);
    await until(() => heard.length === 1, PATIENT);
    await app.queue.remove(id);
    // An evaluation sees that the value has fallen: each extends the lease.
    const leaseEnd = async () => Number(await redis.admin.hget(`{${redis.prefix}}:alerts`, 'until'));
    const before = await leaseEnd();
    await until(async () => (await leaseEnd()) > before + 1_500, PATIENT);
    slow.open();
    await until(() => heard.length === 2, PATIENT);
    expect(heard).toEqual(['firing', 'resolved']);
    await until(async () => (await app.get(QueueAlerts).firing()).length === 0, PATIENT);
  });

  it('is called once for an alert and once for its end, also if another one fails', async () => {
    const heard: string[] = [];
    let failures = 0;
    const { queue, logs } = await withAlerts({
      rules: [{ rule: 'backlog', limit: 0 }],
      notify: [
        ({ state }) => heard.push(state),
        () => {
          failures += 1;
          throw new Error('the channel is gone');
        },
      ],
    });
    const { id } = await queue.add('x', null);
    await until(() => failures === 3, PATIENT);
    expect(heard).toEqual(['firing']);
    await queue.remove(id);
    await until(() => heard.length === 2, PATIENT);
    const since = failures;
    await until(() => failures >= since + 2, PATIENT);
    expect(heard).toEqual(['firing', 'resolved']);
    const undelivered = logs.complaints.filter((line) => line.includes('could not be delivered'));
    expect(undelivered).toEqual([
      expect.stringMatching(/backlog:work:\d+ could not be delivered: the channel is gone/),
    ]);
  });
});

describe('a webhook', () => {
  it('sends the alert with a signature that the receiver can check', async () => {
    const { received, url } = await receiver();
    const secret = 'a secret of some length';
    const { queue } = await withAlerts({
      rules: [{ rule: 'backlog', limit: 0 }],
      source: 'shop',
      notify: webhook({ url, secret, headers: { authorization: 'Bearer x' } }),
    });
    await queue.add('x', null);
    await until(() => received.length === 1, PATIENT);
    const { headers, text, alert } = received[0]!;
    const mac = createHmac('sha256', secret).update(`${headers['x-godwit-timestamp'] as string}.${text}`);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'godwit',
      authorization: 'Bearer x',
      'idempotency-key': `${encodeURIComponent(alert.id)}:firing:${Date.parse(String(alert.at))}`,
      'x-godwit-signature': `sha256=${mac.digest('hex')}`,
    });
    expect(Math.abs(Number(headers['x-godwit-timestamp']) * 1_000 - Date.now())).toBeLessThan(60_000);
    expect(alert).toMatchObject({ rule: 'backlog', queue: 'work', value: 1, limit: 0, source: 'shop' });
    expect(new Date(alert.since).toJSON()).toBe(alert.since);
  });

  it('sends the user and password of its address as a header, and shows neither', async () => {
    const { received, port } = await receiver(() => 403);
    const { queue, logs } = await withAlerts({
      rules: [{ rule: 'backlog', limit: 0 }],
      notify: webhook({ url: `http://us%40er:pass%3Aword@127.0.0.1:${port}/hook` }),
    });
    await queue.add('x', null);
    await until(() => logs.complaints.join('\n').includes(`http://127.0.0.1:${port} answered 403`), PATIENT);
    const { authorization } = received[0]!.headers;
    expect(authorization).toBe(`Basic ${Buffer.from('us@er:pass:word').toString('base64')}`);
    expect(logs.complaints.join('\n')).not.toMatch(/us(%40|@)er|pass/);
  });

  it('tries again after 5xx and 429; after other answers only with the next evaluation', async () => {
    const { received, url } = await receiver((count) => [500, 429, 302, 204][count - 1] ?? 204);
    const { queue, logs } = await withAlerts({
      rules: [{ rule: 'backlog', limit: 0 }],
      notify: webhook({ url }),
    });
    await queue.add('x', null);
    await until(() => received.length === 4, PATIENT);
    expect(new Set(received.map(({ alert }) => alert.id)).size).toBe(1);
    expect(logs.complaints.join('\n')).toMatch(
      /could not be delivered: http:\/\/127\.0\.0\.1:\d+ answered 302 \(attempt 3\)/,
    );
    // The address may be a secret.
    expect(logs.complaints.join('\n')).not.toContain('/hook');
  });

  it('gives up an attempt that is not answered, and writes lines for Slack', async () => {
    const { received, url } = await receiver((count) =>
      count === 1 ? new Promise<number>(() => undefined) : 200,
    );
    const { queue } = await withAlerts({
      rules: [{ rule: 'backlog', limit: 0, severity: 'critical' }],
      notify: webhook({ url, timeout: 100, format: 'slack' }),
    });
    await queue.add('x', null);
    await until(() => received.length === 2, PATIENT);
    expect(received[1]!.text).toBe('{"text":"[critical] queue \\"work\\": 1 waiting job (limit 0)"}');
  });
});

describe('several processes', () => {
  it('send an alert once, and continue with it when the leader was killed', async () => {
    const { received, port } = await receiver();
    const { queue } = await producing();
    const children = [await childOf(port), await childOf(port)];
    await queue.addBulk([1, 2, 3].map((data) => ({ name: 'x', data })));
    await until(() => received.length === 1, PATIENT);
    const first = received[0]!.alert;
    const leader = children.find(({ pid }) => String(pid) === first.source)!;
    const follower = children.find((child) => child !== leader)!;
    await until(
      async () => !(await redis.admin.hget(`{${redis.prefix}}:alerts`, 'state'))?.includes('undelivered'),
      PATIENT,
    );
    const owner = await leaderOf();
    leader.kill('SIGKILL');
    await queue.remove({ state: 'waiting' });
    await until(() => received.length === 2, { timeout: LEASE_MS + PATIENT.timeout });
    expect(await leaderOf()).not.toBe(owner);
    expect(received[1]!.alert).toMatchObject({
      id: first.id,
      state: 'resolved',
      source: String(follower.pid),
    });
  });

  it('repeat a notification in flight when the leader was killed, with the same key', async () => {
    const { received, port } = await receiver((count) =>
      count === 1 ? new Promise<number>(() => undefined) : 204,
    );
    const { queue } = await producing();
    await queue.addBulk([1, 2, 3].map((data) => ({ name: 'x', data })));
    const leader = await childOf(port);
    await until(() => received.length === 1, PATIENT);
    leader.kill('SIGKILL');
    await childOf(port);
    await until(() => received.length === 2, { timeout: LEASE_MS + PATIENT.timeout });
    const [one, two] = received;
    expect(two!.headers['idempotency-key']).toBe(one!.headers['idempotency-key']);
    expect(two!.alert).toMatchObject({ state: 'firing' });
  });

  it('evaluate once per interval, whichever process leads, and change the leader at once when it stops', async () => {
    let looks = 0;
    const start = () => {
      const alerts = createAlerts({
        connection: redis.url,
        prefix: redis.prefix,
        interval: '1s',
        rules: [{ rule: 'backlog', limit: 0 }],
        notify: () => (looks += 1),
      });
      atEnd(() => alerts.close());
      return alerts;
    };
    const { queue } = await producing();
    const first = start();
    await until(leaderOf, PATIENT);
    const owner = await leaderOf();
    const second = start();
    await queue.add('x', null);
    await until(() => looks === 1, PATIENT);
    expect(await leaderOf()).toBe(owner);
    expect(await second.firing()).toMatchObject([{ rule: 'backlog', queue: 'work' }]);
    await first.close();
    const since = performance.now();
    await until(async () => (await leaderOf()) !== owner, PATIENT);
    expect(performance.now() - since).toBeLessThan(LEASE_MS);
    expect(looks).toBe(1);
  });
});
