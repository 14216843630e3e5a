import { ForbiddenException, ServiceUnavailableException } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { QueueDashboardModule, type QueueDashboardOptions } from '#lib/subpaths/dashboard.js';
import { bootDashboard, dead, OWN } from '../support/dashboard.js';
import { gated, oneOfEach } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();
const boot = (authorize: QueueDashboardOptions['authorize'] & {}) =>
  bootDashboard(redis, { queues: ['payroll'], dashboard: { authorize } });

describe('an authorize that throws', () => {
  it('refuses only what it was asked for, if it is an exception of Nest', async () => {
    const { api } = await boot((_request, action, { queue }) => {
      if (queue === undefined || (queue === 'payroll' && action === 'read')) throw new ForbiddenException();
      return 'operator';
    });
    const me = await api('GET', 'me');
    expect([me.status, me.body.queues, me.body.canSeeRedis]).toEqual([200, ['work'], false]);
    const { body } = await api('GET', 'queues');
    expect(body.map(({ name }: { name: string }) => name)).toEqual(['work']);
  });

  it('is its message, if it refuses everything', async () => {
    const { api, follow } = await boot(() => {
      throw new ForbiddenException('ask the night shift');
    });
    for (const path of ['me', 'queues', 'queues/work', 'events']) {
      const { status, body } = await api('GET', path);
      expect([path, status, body.error.message]).toEqual([path, 403, 'ask the night shift']);
    }
    expect((await follow('work:0')).headers['content-type']).toContain('application/json');
  });

  it.each([
    [new TypeError('reading user of undefined'), 500, 'authorize of this dashboard failed'],
    [new ServiceUnavailableException('the directory is down'), 503, 'the directory is down'],
  ])('is a fault otherwise, which is logged once: %s', async (fault, status, message) => {
    const { api, logs } = await boot((_request, _action, { queue }) => {
      if (queue === 'payroll') throw fault;
      return 'admin';
    });
    for (const path of ['me', 'queues', 'overview', 'me']) {
      const answer = await api('GET', path);
      expect([path, answer.status]).toEqual([path, status]);
      expect(answer.body.error.message).toContain(message);
    }
    const lines = logs.complaints.filter((line) => line.includes('authorize failed'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(fault.message);
  });
});

it('a change through a proxy that replaced the host is refused with what the proxy must pass', async () => {
  const { ask } = await boot(() => 'admin');
  const headers = { 'content-type': 'application/json', origin: 'http://tools.example:8080' };
  const { status, text } = await ask('POST', 'api/v1/queues/work/pause', { headers, body: '{}' });
  expect(status).toBe(403);
  expect(text).toMatch(
    /http:\/\/tools\.example:8080.* is not host .*127\.0\.0\.1:\d+.*proxy_set_header Host \$http_host/,
  );
});

it('a dead job is edited only with the right to retry it, because an edit retries it', async () => {
  const { api, queue } = await bootDashboard(redis, {
    dashboard: { authorize: (_request, action) => action !== 'job.retry' },
    handlers: { x: () => Promise.reject(new Error('no')) },
  });
  await queue.add('x', 0, { id: 'a', attempts: 1 });
  await dead(queue, 'a');
  const { version } = (await api('GET', 'queues/work/jobs/a')).body.data;
  const { status, body } = await api('POST', 'queues/work/jobs/a/data', { data: '1', version });
  expect([status, body.error.message]).toEqual([403, 'you may not do this (job.retry)']);
  expect((await queue.get('a'))!.state).toBe('dead');
});

it('of two edits at the same time, the second is refused', async () => {
  const { api, queue } = await boot(() => 'admin');
  await queue.add('x', 1, { id: 'a' });
  const { version } = (await api('GET', 'queues/work/jobs/a')).body.data;
  const edit = (data: string) => api('POST', 'queues/work/jobs/a/data', { data, version });
  const answers = await Promise.all([edit('2'), edit('3')]);
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
  expect((await queue.get('a'))!.data).toBe(answers[0]!.status === 200 ? 2 : 3);
});

it('hidden values are copied only from a job whose data the person may see', async () => {
  const { api, queue } = await boot((_request, action, { jobId }) => action !== 'read-data' || jobId !== 'b');
  for (const id of ['a', 'b']) await queue.add('x', { token: id }, { id });
  const copy = async (like: string) =>
    (await api('POST', 'queues/work/jobs', { name: 'x', data: '{}', like })).status;
  expect([await copy('a'), await copy('b')]).toEqual([200, 403]);
});

it('a field of a body that its call does not read is refused, and nothing changes', async () => {
  const { api, queue } = await boot(() => 'admin');
  await queue.limits.set({ concurrency: 3 });
  await queue.add('x', 1, { id: 'a' });
  const asked = async (method: string, path: string, body: object) => {
    const answer = await api(method, `queues/work/${path}`, body);
    return [answer.status, answer.body.error?.message];
  };
  const known = (field: string, advice: string) => [400, `body.${field} is not an option; ${advice}`];
  expect(await asked('DELETE', 'limits', { nmae: 'x' })).toEqual(known('nmae', 'did you mean name?'));
  expect(await asked('POST', 'limits/release', { shard: 'openai' })).toEqual(
    known('shard', 'did you mean shared?'),
  );
  expect(await asked('POST', 'pause', { group: 'a' })).toEqual(known('group', 'this call takes no fields'));
  expect(await asked('DELETE', 'jobs/a', { reason: 'old' })).toEqual(
    known('reason', 'this call takes no fields'),
  );
  expect(await queue.isPaused()).toBe(false);
  expect((await queue.limits.list())[0]!.concurrency).toBe(3);
  expect((await queue.get('a'))!.state).toBe('waiting');
});

it('a field of an address that its call does not read is refused, instead of an answer without it', async () => {
  const { api, ask, queue } = await boot(() => 'admin');
  const refused = async (path: string) => {
    const { status, body } = await api('GET', path);
    return [path, status, body.error?.message];
  };
  for (const [path, message] of [
    ['queues/work/jobs?nmae=x', 'query.nmae is not an option; did you mean name?'],
    ['queues/work?gruop=a', 'query.gruop is not an option; did you mean group?'],
    ['queues/work/jobs/a?fll=1', 'query.fll is not an option; did you mean full?'],
    ['series?hour=3', 'query.hour is not an option; did you mean hours?'],
    ['find?job=a', 'query.job is not an option; the options are id'],
    ['actions?quee=work', 'query.quee is not an option; did you mean queue?'],
    ['events?tpye=dead', 'query.tpye is not an option; did you mean type?'],
    ['dead?queue=work', 'query.queue is not an option; this call takes no fields in its address'],
    ['me?a=1', 'query.a is not an option; this call takes no fields in its address'],
  ] as const)
    expect(await refused(path)).toEqual([path, 400, message]);
  // A change that takes its fields from the body.
  const { status } = await ask('POST', 'api/v1/queues/work/pause?group=a', { headers: OWN, body: '{}' });
  expect([status, await queue.isPaused()]).toEqual([400, false]);
});

it('an age without a unit is refused, because it would be milliseconds', async () => {
  const { api, queue } = await boot(() => 'admin');
  await queue.add('x', 1);
  for (const age of ['olderThan', 'newerThan'])
    for (const value of ['5', '%201.5', '%2B5']) {
      const { status, body } = await api('GET', `queues/work/jobs?${age}=${value}`);
      expect([age, value, status]).toEqual([age, value, 400]);
      expect(body.error.message).toContain('must be a duration with a unit, such as 10m or 2h');
    }
  const all = await api('GET', 'queues/work/jobs?olderThan=0');
  expect([all.status, all.body.jobs.length]).toEqual([200, 1]);
  const bulk = (olderThan: unknown) =>
    api('POST', 'queues/work/bulk', { kind: 'remove', filter: { state: 'waiting', olderThan } });
  expect((await bulk('5')).status).toBe(400);
  // As in code, a number is milliseconds.
  expect((await bulk(3_600_000)).status).toBe(200);
});

it('a job that has ended cannot be cancelled, and the error does not say that it is gone', async () => {
  const { api, queue } = await boot(() => 'admin');
  await queue.add('x', 1, { id: 'a', delay: '1h', retention: { cancelled: '1h' } });
  const cancel = async (id: string) => {
    const { status, body } = await api('POST', `queues/work/jobs/${id}/cancel`);
    return [status, body.error?.message ?? body.outcome];
  };
  expect(await cancel('a')).toEqual([200, 'cancelled']);
  const why = `job "a" in queue 'work' is cancelled; a job that has ended stays as it is`;
  expect(await cancel('a')).toEqual([409, why]);
  expect(await cancel('b')).toEqual([404, expect.stringContaining('no job "b"')]);
});

it.each<QueueDashboardOptions>([{ guards: [{ canActivate: () => true }] }, { authorize: () => 'viewer' }])(
  'access: public is refused together with %j, which it would contradict',
  (options) => {
    expect(() => QueueDashboardModule.forRoot({ access: 'public', ...options })).toThrow(
      /^QueueDashboardModule\.forRoot\(\)\.access must be left out if guards or authorize is given: /,
    );
  },
);

it('errors advise what to do on the pages, not what to call', async () => {
  const { gate, handlers } = gated();
  const { api, queue } = await bootDashboard(redis, { handlers });
  await oneOfEach(queue);
  for (const [method, path, body, message] of [
    ['POST', 'jobs/active/move', { delay: '1m' }, 'is active; wait for the end of its run, or cancel it'],
    ['POST', 'jobs/dead/move', { delay: '1m' }, 'is dead; open it again to retry it'],
    ['POST', 'jobs/waiting/promote', {}, 'is not delayed; only a delayed job can be run now'],
    ['POST', 'schedules/none/run', {}, 'has no schedule "none"; it was removed or never created'],
    ['POST', 'bulk/none/stop', {}, 'has no bulk act "none"; its record was removed'],
    ['DELETE', '', { confirm: 'work' }, "in queue 'work' is active; pause the queue and let its runs end"],
  ] as const) {
    const answer = await api(method, `queues/work/${path}`.replace(/\/$/, ''), body);
    expect([path, answer.body.error.message]).toEqual([path, expect.stringMatching(`${message}$`)]);
  }
  gate.open();
});
