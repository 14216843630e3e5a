import { describe, expect, it } from 'vitest';
import { RULES } from '#lib/job/rules.js';
import { job, kept, QUEUE, useQueue } from './support.js';

const q = useQueue();

const LINES = RULES.logLinesMax;
/** How many of the jobs one call may delete. */
const STEP = RULES.linesDropped / LINES;
const IDS = ['a', 'b', 'c', 'd', 'e'];

/** Each job has as long a log as a job may have. Deleting it takes as long without the lines. */
const withLogs = (ids = IDS) =>
  q.admin.hset(q.key('logs'), ...ids.flatMap((id) => [id, `\n${LINES}\n${LINES}`]));

/** Each call writes one entry of events. */
async function jobsOfEachCall(act: () => Promise<unknown>): Promise<number[]> {
  await q.admin.del(q.key('events'));
  await act();
  const entries = await q.admin.xrange(q.key('events'), '-', '+');
  return entries.map(([, fields]) => Number(fields[fields.indexOf('n') + 1]));
}

async function died(): Promise<void> {
  await q.bury(...IDS);
  await withLogs();
}

async function delayed(): Promise<void> {
  await q.add(...IDS.map((id) => job(id, { delayMs: 60_000 })));
  await withLogs();
}

async function completed(): Promise<void> {
  await q.hold(...IDS);
  await q.settle(...IDS.map((id) => kept(id, 60_000, '1')));
  await withLogs();
}

async function waiting(): Promise<void> {
  await q.add(...IDS);
  await withLogs();
}

describe('one call deletes few jobs with long logs', () => {
  it.each<[string, () => Promise<void>, () => Promise<unknown>]>([
    [
      'remove dead jobs by a filter',
      died,
      () => q.engine.upkeep.removeDead(QUEUE, { name: 'work', limit: 9 }),
    ],
    ['remove dead jobs by id', died, () => q.engine.upkeep.removeDead(QUEUE, { ids: [...IDS, 'a', 'gone'] })],
    ['retry dead jobs by a filter', died, () => q.engine.upkeep.retryDead(QUEUE, { limit: 9 })],
    ['retry dead jobs by id', died, () => q.engine.upkeep.retryDead(QUEUE, { ids: ['a', ...IDS, 'gone'] })],
    [
      'clean',
      completed,
      () => q.engine.upkeep.clean(QUEUE, { state: 'completed', olderThanMs: 0, limit: 9 }),
    ],
    [
      'clean delayed',
      delayed,
      () => q.engine.upkeep.clean(QUEUE, { state: 'delayed', olderThanMs: 0, limit: 9 }),
    ],
    [
      'clean waiting',
      waiting,
      () => q.engine.upkeep.clean(QUEUE, { state: 'waiting', olderThanMs: 0, limit: 9 }),
    ],
    ['remove', delayed, () => q.engine.admin.removeAll(QUEUE, IDS)],
    ['cancel', delayed, () => q.engine.admin.cancelAll(QUEUE, IDS, 'not needed')],
  ])('%s', async (_, fill, act) => {
    await fill();
    expect(await jobsOfEachCall(act)).toEqual([STEP, STEP, IDS.length - 2 * STEP]);
    expect(await q.admin.exists(q.key('logs'))).toBe(0);
    expect((await q.engine.admin.audit(QUEUE)).violations).toEqual([]);
  });

  it('trim', async () => {
    await completed();
    await q.bury('x', 'y', 'z');
    await withLogs(['x', 'y', 'z']);
    const trimming = q.engineWith({ completedMax: 0, deadMax: 0 }).upkeep;
    const steps = [];
    for (let i = 0; i < 6; i++) steps.push(await trimming.trim(QUEUE));
    expect(steps).toEqual([STEP, STEP, 1, STEP, 1, 0]);
    expect(await q.admin.exists(q.key('logs'))).toBe(0);
  });

  it('trim, also if some jobs have no log', async () => {
    await q.hold(...IDS);
    await q.settle(...IDS.map((id) => kept(id, 60_000, '1')));
    await withLogs(['b', 'c', 'd']);
    const trimming = q.engineWith({ completedMax: 0 }).upkeep;
    expect([await trimming.trim(QUEUE), await trimming.trim(QUEUE)]).toEqual([1 + STEP, 2]);
  });

  it('trim of cancelled jobs', async () => {
    await delayed();
    await q.admin.zadd(q.key('completed'), ...IDS.flatMap((id) => [RULES.cancelledFrom + 1, id]));
    await q.admin.del(q.key('delayed'));
    expect(await q.engine.upkeep.trim(QUEUE)).toBe(STEP);
  });
});

it('one log may be longer than all that a call may delete', async () => {
  await died();
  await q.admin.hset(q.key('logs'), 'a', '\n9000\n9000');
  expect((await q.engine.upkeep.removeDead(QUEUE, { ids: IDS })).removed).toEqual(IDS);
});
