import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { EnqueueJob, QueueEngine } from '#lib/contract/engine.js';
import type { RedisEngine } from '#lib/engine/redis-engine.js';
import { callOf, completed, job, QUEUE, useQueue } from './support.js';
import { itRefusesWrongTypes, rememberingLonger } from './unchanged.js';

// The transaction that stores many or large jobs: `enqueue-begin`, HSET, RPUSH, `enqueue-end`. The promises of
// `enqueue` are tested with it.
const q = useQueue();

const many = (name = 'j') => Array.from({ length: 250 }, (_, i) => job(`${name}${i}`));
const idsOf = (jobs: readonly EnqueueJob[]) => jobs.map(({ id }) => id);

/** The connection has shown that it can run transactions. Returns the commands of each transaction from here on. */
async function transactions(engine: RedisEngine = q.engine): Promise<unknown[][]> {
  const { store } = engine as unknown as {
    store: { commands: { transact: (...args: any[]) => Promise<unknown[]> | null } };
  };
  const { commands } = store;
  expect(commands.transact('open', () => [], 1_000)).toBeNull();
  await engine.open();
  await setImmediate();
  const said: unknown[][] = [];
  const transact = commands.transact.bind(commands);
  commands.transact = (...args) => {
    const made = transact(...args);
    return made && made.then((answers) => (said.push(answers), answers));
  };
  return said;
}

const enqueue = (jobs: readonly EnqueueJob[], seq: number, engine: QueueEngine = q.engine) =>
  engine.enqueue(QUEUE, callOf(jobs, seq));

it('stores many jobs at the end of the line, rings, and writes an event', async () => {
  const said = await transactions();
  await q.add('before');
  await q.wasRung();
  const jobs = many();
  expect(await enqueue(jobs, 2)).toEqual({ kind: 'stored', duplicates: [] });
  expect(said).toEqual([[1, 250, 251, 1]]);
  expect(await q.list('wait')).toEqual(['before', ...idsOf(jobs)]);
  expect(await q.admin.hmget(q.key('jobs'), ...idsOf(jobs))).toEqual(jobs.map(({ body }) => body));
  expect(await q.zset('doorbell')).toEqual(['work']);
  const events = (await q.events()).slice(1);
  expect(events.map(({ type, id, name }) => [type, id, name])).toEqual(
    idsOf(jobs).map((id) => ['added', id, 'work']),
  );
  expect(await q.admin.get(q.key('lane'))).toBe('2\n');
  expect(await q.admin.pttl(q.key('lane'))).toBeGreaterThan(5_000);
});

it('stores large bodies as they are, of several jobs and of one', async () => {
  const said = await transactions();
  const odd = ['', '\u0000', 'work\n%d', 'ä€😀'.repeat(40_000)].map((body, i) => job(`odd${i}`, { body }));
  await enqueue(odd, 1);
  await enqueue([job('alone', { body: `work\n${'x'.repeat(64 * 1024)}` })], 2);
  expect(said.map(([begun]) => begun)).toEqual([1, 1]);
  const bodies = Object.fromEntries(odd.map(({ id, body }) => [id, body]));
  expect(await q.hash('jobs')).toMatchObject({ ...bodies, alone: expect.stringMatching(/^work\nx+$/) });
});

it('writes the name of each if they differ, and no event if none are kept', async () => {
  await transactions();
  await enqueue([...many('a'), job('other', { name: 'other' })], 1);
  expect((await q.events()).at(-1)).toMatchObject({ id: 'other', name: 'other' });
  const before = await q.admin.xlen(q.key('events'));
  const silent = q.engineWith({ maxEvents: 0 });
  await silent.open();
  const said = await transactions(silent);
  await enqueue(many('b'), 2, silent);
  expect(said).toHaveLength(1);
  expect(await q.admin.xlen(q.key('events'))).toBe(before);
});

it('does not need a script that the server knows', async () => {
  const said = await transactions();
  await q.admin.script('FLUSH');
  await enqueue(many(), 1);
  expect(said).toEqual([[1, 250, 250, 1]]);
});

it('is not used if the call may be a repetition, or if jobs exist already, have a priority or a delay', async () => {
  const said = await transactions();
  expect(await q.engine.enqueue(QUEUE, { ...callOf(many('a'), 1), isRepeated: true })).toMatchObject({
    kind: 'stored',
  });
  const [first, ...rest] = many('b');
  await enqueue([{ ...first!, hasOwnId: true }, ...rest], 2);
  await enqueue([{ ...first!, id: 'first', priority: 1 }, ...many('c')], 3);
  await enqueue([{ ...first!, id: 'later', delayMs: 1_000 }, ...many('d')], 4);
  expect(said).toEqual([]);
  expect(await q.admin.hlen(q.key('jobs'))).toBe(1_002);
});

describe('if a call of this number, or a later one, was made', () => {
  const states: Record<string, (jobs: readonly EnqueueJob[]) => Promise<unknown>> = {
    'all of its jobs wait': async () => undefined,
    'all have gone': async (jobs) => {
      expect(await q.claim(250)).toHaveLength(250);
      await q.settle(...idsOf(jobs).map(completed));
    },
    'some run, and some have gone': async (jobs) => {
      await q.claim(100);
      await q.settle(...idsOf(jobs).slice(0, 50).map(completed));
    },
    'others came behind them': () => enqueue(many('later'), 2),
  };
  it.each(Object.keys(states))('changes nothing: %s', async (state) => {
    const said = await transactions();
    const jobs = many();
    await enqueue(jobs, 1);
    await states[state]!(jobs);
    said.length = 0;
    // As a call that was on its way for long, and whose repetition arrived before it.
    const late = () => q.engine.enqueue(QUEUE, callOf(jobs, 1));
    await rememberingLonger(q, late);
    expect(said.map(([begun, , , ended]) => [begun, ended])).toEqual([[0, 0]]);
  });
});

it('leaves the call to `enqueue` if the record of the lane is unreadable', async () => {
  const said = await transactions();
  await q.admin.set(q.key('lane'), 'not ours', 'PX', 10_000);
  await rememberingLonger(q, () => enqueue(many(), 1).catch(() => undefined));
  expect(said).toMatchObject([[0, 250, 250, 0]]);
});

describe('if the user may not run transactions', () => {
  const few = useQueue({ refusals: true });

  it('uses scripts', async () => {
    await few.admin.call('ACL', 'SETUSER', new URL(few.redis.url).username, '-multi');
    const said = await transactions(few.engine);
    await enqueue(many(), 1, few.engine);
    expect(said).toEqual([]);
    expect(await few.list('wait')).toHaveLength(250);
  });
});

itRefusesWrongTypes(q, {
  keys: ['jobs', 'wait', 'meta', 'doorbell', 'lane'],
  prepare: async () => {
    await transactions();
    await q.add('x');
    return () => enqueue(many(), 2);
  },
});
