import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import { InvalidOptionError } from '#lib/errors.js';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { gated, oneOfEach, refused } from '../support/queue-states.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

describe('queue.jobs', () => {
  it('lists the jobs of each state with all that get() returns', async () => {
    const { gate, handlers } = gated();
    const { queue } = await bootQueue(redis, { handlers });
    await oneOfEach(queue);
    for (const state of ['active', 'completed', 'dead', 'delayed'] as const) {
      expect(await queue.jobs({ state })).toEqual({
        jobs: [await queue.get(state)],
        cursor: null,
        examined: 1,
      });
    }
    const { jobs } = await queue.jobs({ state: 'waiting' });
    expect(jobs).toEqual([await queue.get('waiting'), await queue.get('ranked')]);
    expect(jobs).toMatchObject([
      { priority: 0, delay: 0 },
      { priority: 3, delay: 0 },
    ]);
    expect((await queue.jobs({ state: 'delayed' })).jobs).toMatchObject([{ priority: 2, delay: 3_600_000 }]);
    gate.open();
  });

  it('goes through all of them by the cursor of the previous page, in either order', async () => {
    const { queue } = await bootQueue(redis, {});
    await queue.pause();
    const ids = Array.from({ length: 25 }, (_, i) => `j${i}`);
    await queue.addBulk(ids.map((id) => ({ name: 'job', data: { id }, options: { id } })));
    for (const order of ['asc', 'desc'] as const) {
      const found: string[] = [];
      let cursor: string | null | undefined;
      do {
        const page = await queue.jobs({
          state: 'waiting',
          limit: 10,
          order,
          data: false,
          ...(cursor && { cursor }),
        });
        for (const job of page.jobs) expect(job).toMatchObject({ name: 'job', data: undefined });
        found.push(...page.jobs.map(({ id }) => id));
        ({ cursor } = page);
      } while (cursor);
      expect(found).toEqual(order === 'asc' ? ids : ids.toReversed());
    }
  });

  it('lists several states and names one state after the other, by cursor and by offset', async () => {
    const { queue } = await bootQueue(redis, {});
    await queue.pause();
    const of = (name: string, ids: string[], delay: number) =>
      queue.addBulk(ids.map((id) => ({ name, data: 1, options: { id, delay } })));
    await of('mail', ['w1', 'w2', 'w3'], 0);
    await of('other', ['w4'], 0);
    await of('sms', ['d1'], 1_000_000);
    await of('mail', ['d2'], 2_000_000);
    const state = ['dead', 'waiting', 'active', 'delayed'] as const;
    const pages = async (options: { limit: number; name?: string[]; order?: 'desc' }) => {
      const found: string[][] = [];
      let cursor: string | null | undefined;
      do {
        const page = await queue.jobs({ state, ...options, ...(cursor && { cursor }) });
        found.push(page.jobs.map(({ id, state: at }) => `${at} ${id}`));
        ({ cursor } = page);
      } while (cursor);
      return found;
    };
    const [w1, w2, w3, w4] = ['waiting w1', 'waiting w2', 'waiting w3', 'waiting w4'] as const;
    expect(await pages({ limit: 4 })).toEqual([
      [w1, w2, w3, w4],
      ['delayed d1', 'delayed d2'],
    ]);
    expect(await pages({ limit: 3 })).toEqual([
      [w1, w2, w3],
      [w4, 'delayed d1', 'delayed d2'],
    ]);
    expect(await pages({ limit: 5, order: 'desc' })).toEqual([
      [w4, w3, w2, w1, 'delayed d2'],
      ['delayed d1'],
    ]);
    expect((await pages({ limit: 9, name: ['sms', 'other', 'mai'] })).flat()).toEqual([w4, 'delayed d1']);
    const at = async (offset: number) =>
      (await queue.jobs({ state, offset, limit: 2 })).jobs.map(({ id }) => id);
    expect([await at(0), await at(3), await at(5), await at(6)]).toEqual([
      ['w1', 'w2'],
      ['w4', 'd1'],
      ['d2'],
      [],
    ]);
  });

  it('filters by name and by a text in id, name or error', async () => {
    const { queue } = await bootQueue(redis, {});
    await queue.pause();
    await queue.add('welcome', 1, { id: 'ada-1' });
    await queue.add('digest', 1, { id: 'ada-2' });
    const ids = async (more: object) =>
      (await queue.jobs({ state: 'waiting', ...more })).jobs.map(({ id }) => id);
    expect(await ids({ name: 'digest' })).toEqual(['ada-2']);
    expect(await ids({ contains: 'ADA' })).toEqual(['ada-1', 'ada-2']);
    expect(await ids({ contains: 'wel' })).toEqual(['ada-1']);
    expect(await ids({ contains: 'ada', name: 'none' })).toEqual([]);
    expect(await ids({ offset: 1 })).toEqual(['ada-2']);
  });

  it('filters by fields of the data', async () => {
    const { queue } = await bootQueue(redis, {});
    await queue.pause();
    await queue.add('import', { tenant: { id: 7 }, file: 'a.csv' }, { id: 'a' });
    await queue.add('import', { tenant: { id: 77 }, file: 'b.csv' }, { id: 'b' });
    await queue.add('import', { tenant: { id: 7 }, file: 'b.csv' }, { id: 'c', delay: '1h' });
    const ids = async (state: 'waiting' | 'delayed', where: Record<string, string | number>) =>
      (await queue.jobs({ state, where, data: false })).jobs.map(({ id }) => id);
    expect(await ids('waiting', { 'tenant.id': 7 })).toEqual(['a']);
    expect(await ids('delayed', { 'tenant.id': 7, file: 'b.csv' })).toEqual(['c']);
    expect(await ids('delayed', { 'tenant.id': 7, file: 'a.csv' })).toEqual([]);
    await queue.update('b', { data: { tenant: { id: 7 } } });
    expect(await ids('waiting', { 'tenant.id': 7 })).toEqual(['a', 'b']);
  });

  it('filters by a priority or a range of priorities', async () => {
    const { queue } = await bootQueue(redis, {});
    await queue.pause();
    for (const priority of [0, 3, 5, 9])
      await queue.add('mail', 1, { id: `p${priority}`, ...(priority > 0 && { priority }) });
    await queue.add('mail', 1, { id: 'later', priority: 5, delay: '1h' });
    const ids = async (priority: number | string) => {
      const { jobs } = await queue.jobs({ state: ['waiting', 'delayed'], priority, data: false });
      return jobs.map(({ id }) => id).toSorted();
    };
    expect(await ids(5)).toEqual(['later', 'p5']);
    expect(await ids('>3')).toEqual(['later', 'p5', 'p9']);
    expect(await ids('<=3')).toEqual(['p0', 'p3']);
    expect(await ids('4-8')).toEqual(['later', 'p5']);
    expect(await ids(0)).toEqual(['p0']);
  });

  it('filters running jobs by host, process and worker', async () => {
    const { gate, handlers } = gated();
    const { queue } = await bootQueue(redis, { handlers });
    await queue.add('active', 1, { id: 'a' });
    const ids = async (worker: string) =>
      (await queue.jobs({ state: 'active', worker, data: false })).jobs.map(({ id }) => id);
    // The process reports its workers a moment after it has started.
    await until(async () => (await ids(hostname())).length === 1, PATIENT);
    const { worker } = (await queue.get('a'))!;
    for (const place of [`${hostname()}:${process.pid}`, worker!]) expect(await ids(place)).toEqual(['a']);
    expect(await ids(`${hostname()}:1`)).toEqual([]);
    gate.open();
  });

  it.each([
    ['a text as priority', { state: 'dead', priority: 'high' }, 'jobs().priority'],
    ['too high a priority', { state: 'dead', priority: 2_097_152 }, 'jobs().priority'],
    ['half a priority', { state: 'dead', priority: 1.5 }, 'jobs().priority'],
    ['a worker of other jobs', { state: ['active', 'dead'], worker: 'host' }, 'jobs().worker'],
    ['a worker with a space', { state: 'active', worker: 'a b' }, 'jobs().worker'],
    ['an offset with a priority', { state: 'dead', offset: 1, priority: 5 }, 'jobs().offset'],
    ['no field of the data', { state: 'dead', where: {} }, 'jobs().where'],
    ['a list of fields', { state: 'dead', where: ['tenant'] }, 'jobs().where'],
    ['a lost value', { state: 'dead', where: { tenant: undefined } }, 'jobs().where.tenant'],
    ['an object as value', { state: 'dead', where: { tenant: { id: 7 } } }, 'jobs().where.tenant'],
    ['NaN as value', { state: 'dead', where: { tenant: NaN } }, 'jobs().where.tenant'],
    ['half a character as value', { state: 'dead', where: { tenant: '\ud800' } }, 'jobs().where.tenant'],
    ['a field without a name', { state: 'dead', where: { '': 7 } }, 'jobs().where'],
    ['an offset with data', { state: 'dead', offset: 1, where: { tenant: 7 } }, 'jobs().offset'],
    ['no state', {}, 'jobs().state'],
    ['an unknown state', { state: 'failed' }, 'jobs().state'],
    ['an unknown state among others', { state: ['dead', 'failed'] }, 'jobs().state[1]'],
    ['an empty list of states', { state: [] }, 'jobs().state'],
    ['a state twice', { state: ['dead', 'dead'] }, 'jobs().state'],
    ['an empty list of names', { state: 'dead', name: [] }, 'jobs().name'],
    [
      'a cursor of another state',
      { state: 'dead', cursor: cursorOf('', '', '', 'waiting') },
      'jobs().cursor',
    ],
    ['a cursor without a line', { state: 'dead', cursor: cursorOf('', '', '') }, 'jobs().cursor'],
    ['a limit of 0', { state: 'dead', limit: 0 }, 'jobs().limit'],
    ['too high a limit', { state: 'dead', limit: 1_001 }, 'jobs().limit'],
    ['an empty text', { state: 'dead', contains: '' }, 'jobs().contains'],
    ['two lines of text', { state: 'dead', contains: 'a\nb' }, 'jobs().contains'],
    ['another order', { state: 'dead', order: 'newest' }, 'jobs().order'],
    ['a misspelt option', { state: 'dead', nmae: 'x' }, 'jobs().nmae'],
    ['an offset of less than 0', { state: 'dead', offset: -1 }, 'jobs().offset'],
    ['an offset with a filter', { state: 'dead', offset: 1, name: 'x' }, 'jobs().offset'],
    ['a number as cursor', { state: 'dead', cursor: 7 }, 'jobs().cursor'],
    ['a made-up cursor', { state: 'dead', cursor: 'WyJkZWFkIiwiMSJd' }, 'jobs().cursor'],
    [
      'a cursor with another score',
      { state: 'dead', cursor: cursorOf('dead', '-inf', 'a') },
      'jobs().cursor',
    ],
    [
      'an index that is not whole',
      { state: 'waiting', cursor: cursorOf('wait', '1.5', 'a') },
      'jobs().cursor',
    ],
    ['a cursor without an index', { state: 'waiting', cursor: cursorOf('wait', '', 'a') }, 'jobs().cursor'],
    ['a cursor with a line break', { state: 'dead', cursor: cursorOf('de\nad', '1', 'a') }, 'jobs().cursor'],
  ])('refuses %s', async (_, options, place) => {
    const { queue } = await bootQueue(redis, {});
    const error = await refused(queue.jobs(options as never));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error['message']).toContain(place);
  });

  it('begins at the first job if a cursor names an index far behind the last job', async () => {
    const { queue } = await bootQueue(redis, {});
    await queue.pause();
    await queue.addBulk([1, 2, 3].map((data) => ({ name: 'job', data })));
    const page = await queue.jobs({ state: 'waiting', cursor: cursorOf('wait', '9999999999999999', 'x') });
    expect(page.jobs.map(({ data }) => data)).toEqual([1, 2, 3]);
  });

  it('begins at the next line if the line of a cursor does not exist', async () => {
    const { queue } = await bootQueue(redis, {});
    await queue.pause();
    await queue.add('job', 1, { id: 'a' });
    const page = (cursor: string) => queue.jobs({ state: 'waiting', cursor });
    expect((await page(cursorOf('none', '0', ''))).jobs).toHaveLength(1);
    expect((await page(cursorOf('zzz', '0', ''))).jobs).toEqual([]);
  });
});

function cursorOf(...parts: string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}
