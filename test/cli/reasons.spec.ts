import { describe, expect, it, vi } from 'vitest';
import { GroupFullError, QueueFullError } from '#lib/errors.js';
import { Printer } from '#lib/subpaths/cli/context.js';
import { queueFindings } from '#lib/subpaths/cli/doctor.js';
import { standardOutput } from '#lib/subpaths/cli/output.js';
import { page } from '#lib/subpaths/cli/watch-commands.js';
import { getQueueToken } from '#lib/decorators/metadata.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import { createInspector } from '#lib/subpaths/inspector.js';
import { bootQueue, PATIENT, type QueueAppOptions } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { latch, until } from '../support/wait.js';
import { runOn } from './support.js';

const redis = useRedis();

const run = (...words: string[]) => runOn(redis, ...words);
const booted = (options: QueueAppOptions = {}) => bootQueue(redis, { watch: false, ...options });
const fails = () => {
  throw new Error('no');
};

describe('doctor shows why jobs wait', () => {
  it('a hold, and a hold of a shared limit', async () => {
    const { queue } = await booted({
      handlers: { x: () => null },
      queue: { uses: ['openai'] },
      root: { limits: { openai: { concurrency: 2 } } },
    });
    await until(async () => (await queue.limits.listShared()).length === 1, PATIENT);
    expect((await run('doctor')).out).not.toContain('is held');
    await queue.limits.hold('1h');
    await queue.limits.shared('openai').hold('1h');
    await queue.add('x', null);
    const { out } = await run('doctor');
    expect(out).toMatch(
      /^warn +queue work +1 job waits: the queue is held for (59|60) min; godwit limits work$/m,
    );
    expect(out).toMatch(
      /^warn +limit openai +the shared limit 'openai' is held for (59|60) min: jobs of (work|all queues that use it) wait$/m,
    );
  });

  it('a shared limit that only the workers of the queue know, also with the command job', async () => {
    const gate = latch('the end of the first job');
    const { queue, get } = await booted({
      handlers: { x: () => gate.promise },
      queue: { uses: ['openai'] },
      root: { limits: { openai: { concurrency: 1 } } },
    });
    await queue.addBulk(['a', 'b'].map((id) => ({ name: 'x', data: null, options: { id } })));
    await until(async () => (await queue.counts()).active === 1, PATIENT);
    await until(async () => (await get(QueueInspector).workers()).length === 1, PATIENT);
    const reasons = async () =>
      [...(await run('job', 'work', 'b')).out.matchAll(/^waits because +(.*)$/gm)].map((one) => one[1]);
    expect(await reasons()).toEqual(["1 of 1 jobs of the shared limit 'openai' run"]);
    await queue.limits.shared('openai').hold('1h');
    await queue.limits.shared('unused').set({ concurrency: 1 }, { create: true });
    await queue.limits.shared('unused').hold('1h');
    const held = /^the shared limit 'openai' is held for (59|60) min$/;
    expect(await reasons()).toEqual([expect.stringMatching(held)]);
    expect((await run('doctor')).out).toMatch(
      /^warn +queue work +1 job waits: the shared limit 'openai' is held for (59|60) min; godwit limits work$/m,
    );
    const { out: limits } = await run('limits', 'work');
    expect(limits.match(/^shared \w+/gm)).toEqual(['shared openai', 'shared unused']);
    expect(limits.match(/^the shared limit .*$/gm)).toEqual([
      'the shared limit openai is used by work',
      'the shared limit unused is not used now',
    ]);
    gate.open();
  });

  it('an open circuit breaker, not too few workers', async () => {
    const breaker = { failures: 1, ratio: 0.1, window: '1m', openFor: '1h', probes: 1 } as const;
    const { queue } = await booted({
      handlers: { bad: fails },
      queue: { limits: { breaker }, defaults: { attempts: 1 } },
    });
    await until(async () => (await queue.limits.list())[0]?.breaker, PATIENT);
    expect((await run('limits', 'work')).out).toMatch(/^the queue .* free$/m);
    await queue.add('bad', null);
    await until(async () => (await queue.limits.list())[0]?.breaker?.state === 'open', PATIENT);
    expect((await run('limits', 'work')).out).toMatch(/^the queue .* breaker open for (59|60) m$/m);
    await queue.add('bad', null);
    const { out } = await run('doctor');
    expect(out).toMatch(/^warn +queue work +1 job waits: the circuit breaker of the queue is open for /m);
    expect(out).not.toContain('add workers');
  });

  it('a retry budget that is used up', async () => {
    const { queue } = await booted({
      handlers: { bad: fails },
      queue: { limits: { retryBudget: { max: 1, per: '1h' } }, defaults: { attempts: 2, backoff: 1 } },
    });
    await queue.add('bad', null);
    await until(async () => (await queue.limits.list())[0]?.retryBudget?.delayMs, PATIENT);
    expect((await run('limits', 'work')).out).toMatch(/^the queue .* retries wait (59|60) m$/m);
  });

  it('a group that a dead job holds, before one whose job runs, and what to do', async () => {
    const end = latch('the end of the running job');
    const { queue } = await booted({
      handlers: { bad: fails, slow: () => end.promise },
      queue: { groups: { order: 'strict', onDead: 'block' }, defaults: { attempts: 1 } },
    });
    await queue.add('slow', null, { id: 'a-1', group: 'a' });
    await queue.add('bad', null, { id: 'b-1', group: 'b' });
    const done = async () => (await queue.counts()).dead === 1 && (await queue.counts()).active === 1;
    await until(done, PATIENT);
    await queue.add('slow', null, { group: 'a' });
    await queue.add('bad', null, { group: 'b' });
    const { out: groups } = await run('groups', 'work');
    expect(groups).toMatch(/ after a-1$/m);
    expect(groups).toMatch(/ stopped by b-1$/m);
    expect(groups.split('\n')[1]).toMatch(/^group b /);
    expect(groups).toContain('until you retry or remove it: godwit retry work <id>\n');
    const stopped = 'group "b" is stopped by its dead job b-1, and 1 job waits in it; godwit retry work b-1';
    expect((await run('doctor')).out).toContain(`${stopped}, or remove it\n`);
    // It also shows other groups if the oldest job has waited for ten minutes.
    const counts = await queue.counts();
    const late = vi.spyOn(QueueInspector.prototype, 'info');
    late.mockResolvedValue({ name: 'work', counts, paused: false, oldestWaitingMs: 660_000 });
    const { out } = await run('doctor');
    late.mockRestore();
    expect(out).toContain(
      "2 jobs wait: the group 'a' runs one job at a time, and job 'a-1' holds it; godwit",
    );
    expect(out).toContain(stopped);
    end.open();
  });

  it('a rate or a concurrency that is used up, if the oldest job is late', () => {
    const queue = {
      name: 'work',
      counts: { waiting: 3, active: 0, delayed: 0, completed: 0, dead: 0, cancelled: 0 },
      paused: false,
      oldestWaitingMs: 660_000,
    };
    const rate = {
      of: 'queue',
      name: null,
      reason: 'rate',
      opensInMs: 3_000,
      text: 'the rate of the queue is used up for 3 s',
    } as const;
    const serving = { processes: 2, paused: 0 };
    const texts = (info: typeof queue, served: typeof serving, stops: Parameters<typeof queueFindings>[2]) =>
      queueFindings(info, served, stops, []).map(({ text }) => text);
    expect(texts(queue, serving, [])).toEqual(['its oldest job has waited 11 m: add workers or concurrency']);
    expect(texts(queue, serving, [rate])).toEqual([`3 jobs wait: ${rate.text}; godwit limits work`]);
    expect(texts({ ...queue, oldestWaitingMs: 1_000 }, serving, [rate])).toEqual(['3 waiting, 2 processes']);
  });
});

describe('doctor shows where an add found no room', () => {
  const doctor = async () => {
    const lines = (await run('doctor')).out.split('\n').filter((line) => /full|room/.test(line));
    return lines.map((line) => line.replaceAll(/ +/g, ' '));
  };

  it('in the queue, now and in the last 10 minutes', async () => {
    const { queue } = await booted({ queue: { maxWaiting: { limit: 1 } } });
    const { id } = await queue.add('x', null);
    expect(await doctor()).toEqual([]);
    await expect(queue.add('x', null)).rejects.toThrow(QueueFullError);
    const full = 'is full, so adds are rejected: 1 waiting job, and maxWaiting is 1';
    expect(await doctor()).toEqual([`warn queue work ${full}; add workers, or raise maxWaiting`]);
    await queue.remove(id);
    const was =
      /^warn queue work had no room \d+ m?s ago, so adds were rejected: maxWaiting is 1; add workers, /;
    expect(await doctor()).toEqual([expect.stringMatching(was)]);
    const key = `{${redis.prefix}:work}:meta`;
    const at = Number((await redis.admin.hget(key, 'full'))!.split(' ')[0]);
    await redis.admin.hset(key, 'full', `${at - 601_000} 1 reject`);
    expect(await doctor()).toEqual([]);
    await redis.admin.hset(key, 'full', 'of another program');
    expect(await doctor()).toEqual([]);
  });

  it('in a group', async () => {
    const { queue } = await booted({ queue: { groups: { maxSize: 1 } } });
    const { id } = await queue.add('x', null, { group: 'acme' });
    await expect(queue.add('x', null, { group: 'acme' })).rejects.toThrow(GroupFullError);
    const full = 'group "acme" is full, so adds are rejected: 1 waiting job, and maxSize is 1';
    expect(await doctor()).toEqual([`warn queue work ${full}; godwit groups work`]);
    await queue.remove(id);
    const was =
      / group "acme" had no room \d+ m?s ago, so adds were rejected: maxSize is 1; godwit groups work$/;
    expect(await doctor()).toEqual([expect.stringMatching(was)]);
  });
});

describe('a queue that cannot be read', () => {
  it('is named with its error by queues, watch, schedules, health, doctor and top, which show the others', async () => {
    const { app, queue } = await booted({ queues: [{ name: 'broken' }] });
    await app.get<Queue>(getQueueToken('broken')).add('a', null);
    await queue.schedules.upsert('daily', { every: '1d' }, { name: 'a' });
    const tag = `{${redis.prefix}:broken}:`;
    await redis.admin.set(`${tag}dead`, 'of another program');
    await redis.admin.set(`${tag}scheduleOrder`, 'of another program');
    const why = /queue broken +cannot be read: .*WRONGTYPE/;
    const partial = { code: 1, err: expect.stringMatching(why) };
    expect(await run('queues')).toMatchObject({ ...partial, out: expect.stringMatching(/^work +0 /m) });
    expect(await run('queues', '--json')).toMatchObject(partial);
    expect(await run('watch', '--times', '1')).toMatchObject({
      ...partial,
      out: expect.stringMatching(/^[\d:]+ +work +0 /m),
    });
    expect(await run('schedules')).toMatchObject({
      ...partial,
      out: expect.stringMatching(/^work +daily /m),
    });
    expect(await run('health')).toMatchObject({ code: 4, out: expect.stringMatching(why) });
    const { code, out } = await run('doctor', '--deep');
    expect(code).toBe(4);
    expect(out).toMatch(/^fail +queue broken +cannot be read: .*WRONGTYPE/m);
    expect(out).toMatch(/^ok +audit work /m);
    expect(out).not.toContain('godwit acl');
    await using inspector = createInspector({ connection: redis.url, prefix: redis.prefix });
    const print = new Printer(standardOutput(), { width: 200, color: false }, false, false, false);
    const shown = await page(
      { inspector, print, prefix: redis.prefix, values: {}, words: [] },
      { columns: 200, rows: 24 },
    );
    expect(shown).toMatch(/^queue broken cannot be read: .*WRONGTYPE.*\n\nQUEUE.*\nwork /m);
  });
});

describe('a queue that is paused in one process', () => {
  it('is shown by workers, queues, health and doctor', async () => {
    const { queue, runtime } = await booted({
      handlers: { x: () => null },
      root: { lease: { duration: '1s' } },
    });
    await until(async () => (await run('workers')).out.includes(' running '), PATIENT);
    runtime.pause('work');
    await queue.add('x', null);
    await until(async () => (await run('queues')).out.includes('paused in 1 of 1'), PATIENT);
    expect((await run('workers')).out).toMatch(/ paused +0\/10 /);
    expect((await run('doctor')).out).toMatch(
      /^warn +queue work +1 job waits and all processes of the queue have paused it; godwit workers work$/m,
    );
    expect(await run('health')).toMatchObject({
      code: 4,
      out: expect.stringMatching(/^work: 1 job waits and all processes of the queue have paused it$/m),
    });
  });

  it('is named by workers if the process works on others', async () => {
    const { stateOfProcess } = await import('#lib/subpaths/cli/queue-commands.js');
    const pool = (queue: string, paused: string[], quiet: string[] = []) =>
      ({ queues: [queue], paused, quiet, concurrency: 1, workers: [], running: 0, jobs: [] }) as const;
    const process = (...pools: ReturnType<typeof pool>[]) =>
      stateOfProcess({ state: 'running', pools } as unknown as Parameters<typeof stateOfProcess>[0]);
    expect(process(pool('mail', []), pool('exports', ['exports']))).toMatchObject({
      text: 'paused: exports',
    });
    expect(process(pool('mail', []), pool('a', ['a']), pool('b', ['b'], ['b']))).toMatchObject({
      text: 'paused: a, quiet: b',
    });
    expect(process(pool('mail', []))).toBe('running');
  });
});
