import { createBullBoard } from '@bull-board/api';
import { ExpressAdapter } from '@bull-board/express';
import { FastifyAdapter } from '@bull-board/fastify';
import { Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter as NestFastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { describe, expect, it } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { COMPLETED, emptyRow } from '#lib/contract/history.js';
import { GodwitAdapter, type GodwitAdapterOptions } from '#lib/subpaths/bull-board.js';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { QueueModule } from '#lib/module/queue.module.js';
import type { Queue } from '#lib/producer/queue.js';
import type { ScheduleSnapshot } from '#lib/producer/schedules.js';
import { atEnd } from '../support/cleanup.js';
import { Reports } from '../support/hourly-report.js';
import { PATIENT, processorOf } from '../support/queue-app.js';
import { gated, oneOfEach } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

interface Board {
  readonly queue: Queue;
  /** Sends a request to the API of the board. */
  readonly api: (method: string, path: string, body?: object) => Promise<{ status: number; body: any }>;
  /** The page of a tab: its ids and the number of pages. */
  readonly tab: (
    status: string,
    page?: number,
    perPage?: number,
  ) => Promise<{ ids: string[]; pages: number }>;
}

/** A Nest application with a board at `/queues`, as the guide sets one up. */
async function boot(
  platform: string,
  options?: GodwitAdapterOptions,
  providers: Type[] = [],
): Promise<Board> {
  const { gate, handlers } = gated();
  @Module({
    imports: [
      QueueModule.forRoot({
        connection: redis.url,
        prefix: redis.prefix,
        shutdown: { timeout: '3s', grace: '100ms' },
      }),
      QueueModule.registerQueue({ name: 'work' }),
    ],
    providers: [processorOf('work', handlers), ...providers],
  })
  class AppModule {}
  const app =
    platform === 'express'
      ? await NestFactory.create<NestExpressApplication>(AppModule, { logger: false })
      : await NestFactory.create<NestFastifyApplication>(AppModule, new NestFastifyAdapter(), {
          logger: false,
        });
  atEnd(async () => {
    gate.open();
    await app.close();
  });
  const queue = app.get<Queue>(getQueueToken('work'));
  const queues = [new GodwitAdapter(queue, options)];
  if (platform === 'express') {
    const serverAdapter = new ExpressAdapter();
    serverAdapter.setBasePath('/queues');
    createBullBoard({ queues, serverAdapter, options: { validateResponses: true } });
    (app as NestExpressApplication).use('/queues', serverAdapter.getRouter());
  } else {
    const serverAdapter = new FastifyAdapter();
    serverAdapter.setBasePath('/queues');
    createBullBoard({ queues, serverAdapter, options: { validateResponses: true } });
    await (app as NestFastifyApplication).register(serverAdapter.registerPlugin() as never, {
      prefix: '/queues',
    });
  }
  await app.listen(0, '127.0.0.1');
  const url = `${(await app.getUrl()).replace('[::1]', '127.0.0.1')}/queues`;
  const api = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${url}/api${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text) };
  };
  const tab = async (status: string, page = 1, perPage = 10) => {
    const query = `activeQueue=work&status=${status}&page=${page}&jobsPerPage=${perPage}`;
    const { body } = await api('GET', `/queues?${query}`);
    const [one] = body.queues;
    return { ids: one.jobs.map(({ id }: { id: string }) => id), pages: one.pagination.pageCount };
  };
  return { queue, api, tab };
}

describe.each(['express', 'fastify'])('a board on %s', (platform) => {
  it('shows each job under the tab of its state, with all that is known of it', async () => {
    const { queue, api, tab } = await boot(platform);
    await oneOfEach(queue);
    for (const [status, id] of [
      ['active', 'active'],
      ['completed', 'completed'],
      ['failed', 'dead'],
      ['delayed', 'delayed'],
    ] as const)
      expect([status, await tab(status)]).toEqual([status, { ids: [id], pages: 1 }]);
    expect((await tab('waiting')).ids).toEqual(['waiting', 'ranked']);
    expect((await tab('latest')).ids.toSorted()).toEqual([
      'active',
      'completed',
      'dead',
      'delayed',
      'ranked',
      'waiting',
    ]);
    const isListed = async () => (await api('GET', '/queues/work/workers')).body.workers.length > 0;
    await until(isListed, PATIENT);
    const { body } = await api('GET', '/queues');
    expect(body.queues).toMatchObject([
      {
        name: 'work',
        counts: { active: 1, waiting: 2, completed: 1, failed: 1, delayed: 1 },
        isPaused: true,
        allowRetries: true,
        allowCompletedRetries: true,
        hasWorkers: true,
      },
    ]);
    const dead = await api('GET', '/queues/work/dead');
    expect(dead).toMatchObject({
      status: 200,
      body: {
        status: 'failed',
        job: { name: 'die', attempts: 1, isFailed: true, failedReason: expect.stringContaining('no luck') },
      },
    });
    expect(dead.body.job.stacktrace[0]).toContain('Error: no luck');
    // Without a start, the board shows a run of decades.
    expect(dead.body.job.processedOn).toBe(dead.body.job.finishedOn);
    expect((await api('GET', '/queues/work/completed')).body.job).toMatchObject({
      processedOn: expect.any(Number),
      returnValue: 'done',
      data: 1,
    });
    expect((await api('GET', '/queues/work/none')).status).toBe(404);
    expect((await api('GET', '/queues/work/dead/flow')).status).toBe(200);
    expect((await api('GET', '/queues/work/workers')).body.workers).toMatchObject([
      { name: String(process.pid) },
    ]);
    expect((await api('GET', '/queues/work/metrics')).body).toMatchObject({
      completed: { meta: { count: 1 } },
      failed: { meta: { count: 1 } },
    });
    expect((await api('GET', '/queues/work/default-job-options')).body).toMatchObject({
      attempts: 3,
      backoff: { type: 'exponential', delay: 1_000 },
    });
    expect((await api('GET', '/redis/stats')).body).toMatchObject({ backend: 'redis', mode: 'standalone' });
  });

  it('shows the last hour by the minute if a process counts it', async () => {
    const { queue, api } = await boot(platform);
    await queue.pause();
    const { engine } = queue as unknown as { engine: QueueEngine };
    const minute = Math.floor(engine.now() / 60_000) * 60_000;
    const rowOf = (completed: number) => Object.assign(emptyRow(), { [COMPLETED]: completed });
    for (const [seq, minutes] of [3, 50, 70].entries()) {
      const at = minute - minutes * 60_000;
      const rows = [{ minute: at, name: 'done', row: rowOf(minutes) }];
      const hour = Math.floor(at / 3_600_000) * 3_600_000;
      await engine.admin.countMinutes('work', { by: 'name', lane: 'test', seq: seq + 1, hour, rows });
    }
    const { completed, failed } = (await api('GET', '/queues/work/metrics')).body;
    const first = completed.data.findIndex((count: number) => count > 0);
    // The minute may have changed since.
    expect([2, 3]).toContain(first);
    const shown = completed.data.flatMap((count: number, at: number) =>
      count > 0 ? [[at - first, count]] : [],
    );
    expect(shown).toEqual([
      [0, 3],
      [47, 50],
    ]);
    expect([completed.meta.prevCount, failed.data.length]).toEqual([0, 59]);
  });

  it('turns to any page', async () => {
    const { queue, tab } = await boot(platform);
    await queue.pause();
    const ids = Array.from({ length: 25 }, (_, i) => `j${i}`);
    await queue.addBulk(ids.map((id) => ({ name: 'done', data: 1, options: { id } })));
    expect(await tab('waiting', 3)).toEqual({ ids: ids.slice(20), pages: 3 });
    expect(await tab('waiting', 2, 5)).toEqual({ ids: ids.slice(5, 10), pages: 5 });
  });

  it('adds, promotes, removes and retries a job', async () => {
    const { queue, api } = await boot(platform);
    await oneOfEach(queue);
    const added = await api('POST', '/queues/work/add', {
      name: 'done',
      data: { a: 1 },
      options: {
        jobId: 'new',
        delay: 60_000,
        attempts: 7,
        priority: 2,
        group: { id: 'tenant 7' },
        backoff: { type: 'fixed', delay: 500 },
      },
    });
    expect(added).toMatchObject({
      status: 200,
      body: { status: 'delayed', job: { id: 'new', data: { a: 1 }, opts: { attempts: 7, priority: 2 } } },
    });
    expect(await queue.get('new')).toMatchObject({ state: 'delayed', attempts: 7, priority: 2 });
    expect((await api('PUT', '/queues/work/new/promote')).status).toBe(204);
    expect((await queue.get('new'))?.state).toBe('waiting');
    expect((await api('PUT', '/queues/work/new/clean')).status).toBe(204);
    expect(await queue.get('new')).toBeNull();
    expect((await api('PUT', '/queues/work/dead/retry')).status).toBe(204);
    expect((await queue.get('dead'))?.state).toBe('waiting');
    expect((await api('PUT', '/queues/work/waiting/retry')).status).toBe(400);
    expect((await api('PUT', '/queues/work/active/clean')).status).toBe(409);
    expect((await api('GET', '/queues/work/completed/logs')).body).toEqual([]);
    expect((await api('PUT', '/queues/work/completed/retry')).status).toBe(204);
    expect((await queue.get('completed'))?.state).toBe('waiting');
  });

  it('changes the data, the time and the priority of a job', async () => {
    const { queue, api } = await boot(platform);
    await oneOfEach(queue);
    expect((await api('PATCH', '/queues/work/delayed/update-data', { jobData: { b: 2 } })).status).toBe(200);
    const runAt = Date.now() + 7_200_000;
    expect((await api('PATCH', '/queues/work/delayed/delay', { runAt })).status).toBe(200);
    expect((await api('PATCH', '/queues/work/delayed/priority', { priority: 9 })).status).toBe(200);
    const { dueAt, ...job } = (await queue.get('delayed'))!;
    expect(job).toMatchObject({ state: 'delayed', data: { b: 2 }, priority: 9 });
    expect(Math.abs(dueAt!.getTime() - runAt)).toBeLessThan(5_000);
    // If these differ, the board says that the new time is not known.
    const shown = (await api('GET', '/queues/work/delayed')).body.job;
    expect([shown.opts.delay, shown.timestamp + shown.delay]).toEqual([shown.delay, dueAt!.getTime()]);
    expect((await api('PATCH', '/queues/work/waiting/delay', { runAt })).status).toBe(400);
  });

  it('retries, promotes and removes all jobs of a tab', async () => {
    const { queue, api } = await boot(platform);
    await queue.addBulk(
      Array.from({ length: 30 }, () => ({ name: 'die', data: 1, options: { attempts: 1 } })),
    );
    await until(async () => (await queue.counts()).dead === 30, PATIENT);
    await queue.pause();
    expect((await api('PUT', '/queues/work/retry/failed')).body).toEqual({ retried: 30, skipped: 0 });
    expect(await queue.counts()).toMatchObject({ waiting: 30, dead: 0 });
    await queue.addBulk(
      Array.from({ length: 30 }, () => ({ name: 'done', data: 1, options: { delay: '1h' } })),
    );
    expect((await api('PUT', '/queues/work/promote')).status).toBe(200);
    expect(await queue.counts()).toMatchObject({ waiting: 60, delayed: 0 });
    expect((await api('PUT', '/queues/work/empty')).status).toBe(200);
    expect(await queue.counts()).toMatchObject({ waiting: 0 });
    expect((await api('PUT', '/queues/work/clean/completed')).status).toBe(200);
  });

  it('pauses, resumes and obliterates', async () => {
    const { queue, api } = await boot(platform);
    expect((await api('PUT', '/queues/work/obliterate', {})).body).toMatchObject({
      error: { key: 'ERRORS.QUEUE_NOT_PAUSED' },
    });
    await oneOfEach(queue);
    expect((await api('PUT', '/queues/work/resume')).status).toBe(200);
    expect(await queue.isPaused()).toBe(false);
    expect((await api('PUT', '/queues/pause')).status).toBe(200);
    expect(await queue.isPaused()).toBe(true);
    expect((await api('PUT', '/queues/work/obliterate', {})).body).toMatchObject({
      error: { key: 'ERRORS.QUEUE_HAS_ACTIVE_JOBS' },
    });
    expect((await api('PUT', '/queues/work/obliterate', { force: true })).status).toBe(200);
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 0 });
  });

  it('lists schedules, changes when they run, runs and removes them', async () => {
    const { queue, api } = await boot(platform);
    await queue.pause();
    await queue.schedules.upsert(
      'nightly',
      { cron: '0 3 * * *', tz: 'Europe/Berlin', overlap: 'skip' },
      { name: 'done', data: 7 },
    );
    const { body } = await api('GET', '/job-schedulers');
    expect(body.schedulers).toMatchObject([
      {
        id: 'nightly',
        queueName: 'work',
        name: 'done',
        pattern: '0 3 * * *',
        tz: 'Europe/Berlin',
        template: { data: 7 },
      },
    ]);
    expect((await api('PATCH', '/queues/work/job-schedulers/nightly', { every: 60_000 })).status).toBe(204);
    expect(await queue.schedules.get('nightly')).toMatchObject({
      rule: { every: 60_000, overlap: 'skip' },
      template: { data: 7 },
    });
    const poll = { every: '1h', afterEnd: true, jitter: '5s', immediately: true } as const;
    await queue.schedules.upsert('poll', poll, { name: 'done' });
    expect((await api('PATCH', '/queues/work/job-schedulers/poll', { every: 60_000 })).status).toBe(204);
    expect((await queue.schedules.get('poll'))!.rule).toEqual({ ...poll, every: 60_000 });
    await queue.schedules.remove('poll');
    expect(
      (await api('PATCH', '/queues/work/job-schedulers/nightly', { pattern: '99 * * * *' })).status,
    ).toBe(400);
    expect((await api('PATCH', '/queues/work/job-schedulers/none', { every: 60_000 })).status).toBe(404);
    const run = await api('PUT', '/queues/work/job-schedulers/nightly/run');
    expect(run).toMatchObject({ status: 200, body: { job: { name: 'done', data: 7 } } });
    expect((await queue.counts()).waiting).toBe(1);
    expect((await api('PUT', '/queues/work/job-schedulers/nightly/remove')).status).toBe(204);
    expect(await queue.schedules.list()).toEqual([]);
  });

  it('does not edit a schedule that code declares: it would no longer follow the code', async () => {
    const { queue, api } = await boot(platform, {}, [Reports]);
    const [{ id, rule }] = await until(async () => {
      const found = await queue.schedules.list();
      return found.length > 0 && (found as [ScheduleSnapshot]);
    });
    const { status, body } = await api('PATCH', `/queues/work/job-schedulers/${id}`, { every: 60_000 });
    expect([status, body.message]).toEqual([500, expect.stringContaining('declared in the code of')]);
    expect(await queue.schedules.get(id)).toMatchObject({ rule, owner: 'app' });
  });

  it('shows the schedule and the group of a job', async () => {
    const { queue, api } = await boot(platform, {
      externalJobUrl: ({ id, repeatJobKey = 'none' }) => ({ href: `/${repeatJobKey}`, displayText: `${id}` }),
    });
    await queue.pause();
    await queue.schedules.upsert('a@b', { every: '1h', immediately: true }, { name: 'done' });
    await until(async () => (await queue.counts()).waiting === 1, PATIENT);
    await queue.add('done', null, { id: 'mail@2026', group: 'tenant 7' });
    const { body } = await api('GET', '/queues?activeQueue=work&status=waiting&page=1');
    const jobs = body.queues[0].jobs as { externalUrl: { href: string }; groupId?: string }[];
    expect(jobs.map(({ externalUrl, groupId }) => [externalUrl.href, groupId])).toEqual([
      ['/a@b', undefined],
      ['/none', 'tenant 7'],
    ]);
  });

  it('changes nothing in read-only mode', async () => {
    const { queue, api } = await boot(platform, { readOnlyMode: true });
    await queue.pause();
    await queue.add('done', 1, { id: 'a' });
    expect((await api('PUT', '/queues/work/a/clean')).status).toBe(405);
    expect(await queue.get('a')).not.toBeNull();
  });
});

describe('the adapter', () => {
  it('refuses what is no queue, and options that it does not know', async () => {
    expect(() => new GodwitAdapter('work' as never)).toThrow('the handle of a queue');
    const { queue } = await boot('express');
    const adapter = new GodwitAdapter(queue);
    await expect(adapter.setGlobalConcurrency(5)).rejects.toThrow('queue.limits.set({ concurrency })');
    await expect(adapter.addJob('done', 1, { repeat: {} } as never)).rejects.toThrow(
      'add().options.repeat is not an option; use @Schedule',
    );
    expect(await queue.counts()).toMatchObject({ waiting: 0, delayed: 0 });
  });
});
