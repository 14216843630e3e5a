import { existsSync, readdirSync } from 'node:fs';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { RedisEngine } from '#lib/engine/redis-engine.js';
import { LETTERED_JOBS } from '#lib/engine/keys.js';
import { allScripts, type AnyScript } from '#lib/engine/script.js';
import { aclRules } from '../../tools/acl.mjs';
import { atEnd } from '../support/cleanup.js';
import { refusals } from '../support/acl-user.js';
import { useServer } from '../support/server.js';
import {
  callOf,
  completed,
  dead,
  job,
  kept,
  LEASE_MS,
  LIMITS,
  processRecord,
  QUEUE,
  retried,
  useQueue,
  WORKER,
} from './support.js';
import { newSet } from './declarations-support.js';
import { firing, putting, tick } from './schedules-support.js';

// Rules for every script. The spec has its own server, because it drops scripts and adds users.
const q = useQueue({ server: useServer() });

const SCRIPTS = new URL('../../lib/engine/scripts/', import.meta.url);
const luaIn = (folder: string) =>
  readdirSync(new URL(folder, SCRIPTS))
    .filter((file) => file.endsWith('.lua'))
    .map((file) => file.slice(0, -'.lua'.length));
const byName = (script: AnyScript) => script.name;
const all = allScripts().map((script) => [script.name, script] as const);

it('every .lua file has a descriptor that the engine uses, and a spec', () => {
  const files = luaIn('./').toSorted();
  expect(allScripts().map(byName).toSorted(), 'the descriptors').toEqual(files);
  const specs = files.filter((name) => existsSync(new URL(`${name}.spec.ts`, import.meta.url)));
  expect(specs, 'the specs, test/scripts/<name>.spec.ts').toEqual(files);
});

it('only scripts that need memory are refused when it is full', () => {
  const refused = allScripts().filter(({ memory }) => memory === 'refuse');
  expect(refused.map(byName).toSorted()).toEqual([
    'count-minutes',
    'declare',
    'enqueue',
    'enqueue-begin',
    'enqueue-plain',
    'fire',
    'note',
    'publish',
    'put-schedule',
    'update',
  ]);
});

it.each(all)(
  '%s is marked as reading if, and only if, none of its commands writes',
  async (_, { text, memory }) => {
    const commands = new Set(Array.from(text.matchAll(/redis\.p?call\('(\w+)'/g), ([, command]) => command!));
    const infos = (await q.admin.command('INFO', ...commands)) as [string, number, string[]][];
    expect(infos).toHaveLength(commands.size);
    expect(infos.some(([, , flags]) => flags.includes('write'))).toBe(memory !== 'read');
  },
);

it.each(all)('%s loads on the server under the name that is called', async (_, script) => {
  expect(await q.admin.script('LOAD', script.text)).toBe(script.sha);
});

it.each(all)('%s begins with its flags', (_, { text, memory }) => {
  const flags = { allow: '#!lua flags=allow-oom\n', refuse: '#!lua\n', read: '#!lua flags=no-writes\n' };
  expect(text.startsWith(flags[memory])).toBe(true);
});

it.each(all)('%s gives each command a declared key', (name, { text, keys, keysOfQueues }) => {
  const slots = (text.match(/KEYS\[\d+\]/g) ?? []).map((slot) => Number(/\d+/.exec(slot)![0]));
  // It reads one active set, the first key after its own.
  const most = name === 'audit-page' ? keys.length + 1 : keys.length;
  expect(slots.filter((slot) => slot > most)).toEqual([]);
  const each = (text.match(/KEYS\[i \+ \d+\]/g) ?? []).map((slot) => Number(/\d+/.exec(slot)![0]));
  expect(each.filter((slot) => slot >= Math.max(keysOfQueues.length, 4))).toEqual([]);
  // Besides the keys themselves: the variables of loops over them, and the hash that holds a body, which is one of
  // them.
  const loops =
    /^(key|hash|hash_of\(\w+(\[[\w#]+\])?\)|KEYS\[\d+\]|KEYS\[i\]|KEYS\[i \+ \d+\]|traces\[i\]|unpack\(KEYS\)|unpack\(others\))$/;
  const calls = [
    ...text.matchAll(
      /redis\.p?call\('(\w+)'(?:, ('STREAM', )?([^,()]+(?:\((?:KEYS|others|\w+(?:\[\w+\])?)\))?))?/g,
    ),
  ];
  const others = calls.filter(([, command, , key = '']) => command !== 'TIME' && !loops.test(key));
  expect(others.map(([call]) => call)).toEqual([]);
  expect(calls.length).toBe((text.match(/redis\.p?call\(/g) ?? []).length);
});

it.each(all)('%s uses every key it declares', (_, { text, keys, keysOfQueues, name }) => {
  // It deletes all of them at once.
  if (name === 'obliterate') return;
  const isLettered = (key: string) => (LETTERED_JOBS as readonly string[]).includes(key);
  expect(keys.filter((key, i) => !isLettered(key) && !text.includes(`KEYS[${i + 1}]`))).toEqual([]);
  const usesLetters = /KEYS\[-?\d+ \+ (letter|string\.byte)|at = -?\d+ \+ 65/.test(text);
  expect([keys.filter(isLettered), usesLetters]).toEqual(
    keys.some(isLettered) ? [LETTERED_JOBS, true] : [[], false],
  );
  expect(keysOfQueues.filter((_key, i) => !text.includes(`KEYS[i + ${i}]`))).toEqual([]);
});

/** One call of every verb that runs a script. Each call has something to do. */
function aWholeLife(engine: RedisEngine): [string, () => Promise<unknown>][] {
  const exchange = (seq: number, more: object) => q.exchange({ seq, want: 10, ...more }, engine);
  const jobs = [
    job('vip', { priority: 1 }),
    job('due', { dueAt: 1 }),
    job('late', { delayMs: 60_000, priority: 2 }),
  ];
  const settled = [completed('a'), kept('b', 60_000, '1'), retried('c', { delayMs: 60_000 }), dead('d')];
  return [
    ['enqueue', () => engine.enqueue(QUEUE, callOf(['a', 'b', 'c', 'd', 'e', ...jobs], 1, 'life'))],
    ['exchange', () => exchange(1, {})],
    [
      'note',
      () =>
        engine.note(QUEUE, { worker: WORKER, id: 'a', name: 'work', attempt: 1, progress: '1', log: 'x' }),
    ],
    ['exchange', () => exchange(2, { settled })],
    ['promote', () => engine.promote(QUEUE, 10)],
    ['look', () => engine.look([{ queue: QUEUE, worker: WORKER }])],
    ['update', () => engine.admin.update(QUEUE, { id: 'late', delayMs: 50 })],
    ['promote-now', () => engine.admin.promoteNow(QUEUE, 'late')],
    ['counts', () => engine.admin.counts(QUEUE)],
    ['get', () => engine.admin.get(QUEUE, 'e')],
    ['stats', () => engine.admin.stats(QUEUE, 2)],
    [
      'count-minutes',
      () => engine.admin.countMinutes(QUEUE, { by: 'name', lane: 'p', seq: 1, hour: 0, rows: [] }),
    ],
    ['oldest', () => engine.admin.oldestWaitingMs(QUEUE)],
    ['remove', () => engine.admin.remove(QUEUE, 'late')],
    ['cancel', () => engine.admin.cancel(QUEUE, 'due', 'why')],
    ['page', () => engine.admin.jobs(QUEUE, { state: 'dead', after: null, limit: 5 })],
    ['overgrown', () => engine.upkeep.overgrown([QUEUE])],
    ['dead-that-fit', () => engine.upkeep.trim(QUEUE)],
    ['trim', () => engine.upkeep.trim(QUEUE)],
    ['retry-dead', () => engine.upkeep.retryDead(QUEUE, { ids: ['d'] })],
    ['clean', () => engine.upkeep.clean(QUEUE, { state: 'completed', olderThanMs: 0, limit: 5 })],
    ['publish', () => engine.admin.publish(QUEUE, 'own', '1')],
    ['pause', () => engine.admin.pause(QUEUE)],
    ['pause', () => engine.admin.resume(QUEUE)],
    ['beat', () => engine.beat(QUEUE, WORKER, LEASE_MS)],
    ['adopt', () => engine.adopt(QUEUE, WORKER, [])],
    ['release', () => engine.release(QUEUE, { worker: WORKER, ids: ['e'], leave: false })],
    ['put-schedule', () => engine.schedules.put(QUEUE, putting('s'))],
    ['schedules', () => engine.schedules.list(QUEUE, { offset: 0, limit: 10 })],
    ['pause-schedule', () => engine.schedules.pause(QUEUE, 's')],
    [
      'resume-schedule',
      async () => {
        const { revision } = (await engine.schedules.get(QUEUE, 's')).schedule!;
        return engine.schedules.resume(QUEUE, { id: 's', revision, nextAt: 1_000 });
      },
    ],
    ['due-schedules', () => engine.schedules.due(QUEUE, 0)],
    ['fire', () => fireTwice(engine)],
    ['remove-schedule', () => engine.schedules.remove(QUEUE, 's')],
    ['declare', () => engine.declarations.declare(QUEUE, newSet('p1', ['x', 'y']))],
    ['withdraw', () => engine.declarations.withdraw(QUEUE, newSet('p1', ['x', 'y']))],
    ['declare', () => engine.declarations.declare(QUEUE, newSet('p2', ['y']))],
    ['renew', () => engine.declarations.renew(QUEUE, newSet('p2', ['y']))],
    ['overdue', () => engine.overdue(QUEUE, 1_000)],
    [
      'recover',
      () => engine.recover(QUEUE, { worker: WORKER, beatMs: 1_000, leaseMs: LEASE_MS, maxStalls: 5 }),
    ],
    ['dispatch', () => dispatchOne(engine)],
    ['audit', () => engine.admin.audit(QUEUE)],
    ['audit-page', () => auditMany(engine)],
    [
      'repair',
      async () => {
        await q.admin.del(q.key('workers'));
        return engine.admin.repair(QUEUE, 5);
      },
    ],
    ['register', () => engine.processes.register(processRecord(), LEASE_MS)],
    ['order', () => engine.processes.order('p1', { id: 'o', kind: 'pause', queue: null, by: '' })],
    ['lead', () => engine.processes.lead({ owner: 'p1', leaseMs: LEASE_MS, state: '' })],
    [
      'record-action',
      () =>
        engine.actions.record({
          actor: 'ada',
          action: 'job.retry',
          queue: QUEUE,
          target: 'd',
          count: 1,
          result: 'ok',
        }),
    ],
    ['actions', () => engine.actions.list({ before: null, limit: 10 })],
    ['put-bulk-act', () => engine.bulkActs.put({ id: 'b', queue: QUEUE, before: '', after: '{}' })],
    ['bulk-acts', () => engine.bulkActs.list()],
    ['free-keys', () => engine.upkeep.freeKeys(QUEUE, ['key'])],
    ['list-workers', () => engine.processes.list()],
    ['unregister', () => engine.processes.unregister('p1')],
    ['enqueue-plain', () => engine.enqueue(QUEUE, callOf(['plain'], 2, 'life'))],
    ['enqueue-begin', () => enqueueMuch(engine, 1)],
    ['enqueue-end', () => enqueueMuch(engine, 3)],
    ['claim', () => claimAtBell(engine)],
    ['set-limits', () => engine.limits.set(QUEUE, 'q', 'live', { concurrency: 5 })],
    ['wake-lines', () => engine.limits.set(QUEUE, 'g', 'live', { concurrency: 5 })],
    ['charge', () => engine.limits.charge(QUEUE, [{ field: 'q', holdMs: 1, count: 0 }])],
    ['limits', () => engine.limits.list(QUEUE)],
    [
      'report',
      () => engine.limits.report(QUEUE, [{ field: 'q', completed: 1, failed: 1, retries: 1, firsts: 1 }]),
    ],
    [
      'share',
      () =>
        engine.limits.share(QUEUE, {
          limits: ['api'],
          worker: 'w',
          seq: 1,
          running: 0,
          want: 1,
          kept: null,
          leaseMs: LEASE_MS,
        }),
    ],
    ['claim-limited', () => q.exchange({ worker: 'limited', seq: 1, want: 1 }, engine)],
    ['obliterate', () => engine.admin.obliterate(QUEUE, true)],
  ];
}

/** More jobs than one script call stores, in a queue of their own. */
async function enqueueMuch(engine: RedisEngine, first: number): Promise<unknown> {
  const jobs = Array.from({ length: 250 }, (_, i) => `j${i}`);
  // In the first call the connection may not have shown yet that it can run transactions.
  for (const seq of [first, first + 1]) {
    const ids = jobs.map((id) => `${id}-${seq}`);
    await engine.enqueue('much', callOf(ids, seq, 'much'));
  }
  expect((await engine.admin.counts('much')).waiting).toBe(500);
  return engine.admin.obliterate('much', true);
}

/** By a worker that has made one call, and at a bell that rings. */
async function claimAtBell(engine: RedisEngine): Promise<unknown> {
  const idle = { worker: 'idle', leaseMs: LEASE_MS, want: 10, maySuspect: true, settled: [] };
  await engine.exchange(QUEUE, { ...idle, seq: 1, want: 0 });
  await engine.awaitBell([QUEUE], 1);
  await engine.ring(QUEUE);
  const { answer } = await engine.claimAtBell(QUEUE, { ...idle, seq: 2 }, 5_000)!;
  expect(answer).toMatchObject({ kind: 'claimed', claimed: expect.arrayContaining([]) });
  return answer;
}

/** Jobs of every kind, then one that replaces the last. */
async function fireTwice(engine: RedisEngine): Promise<unknown> {
  const now = await q.now();
  const kinds = [
    tick('s@1'),
    tick('s@2', { priority: 1 }),
    tick('s@3', { dueAt: now + 60_000, priority: 1 }),
  ];
  for (const jobs of [kinds, [tick('s@4')], [tick('s@5')]]) {
    const { schedule } = await engine.schedules.get(QUEUE, 's');
    const { made } = await engine.schedules.fire(QUEUE, [firing(schedule!, jobs, { overlap: 'replace' })]);
    expect(made).toEqual([jobs.length]);
  }
  return engine.schedules.scheduled([QUEUE]);
}

/** Of keys that no queue uses. */
async function dispatchOne(engine: RedisEngine): Promise<unknown> {
  const [delayedKey, readyKey] = ['delayed', 'wait'].map((kind) => `{${q.redis.prefix}:tasks}:${kind}`);
  await q.admin.zadd(delayedKey!, 1, 'task');
  return engine.tasks.dispatch({ delayedKey: delayedKey!, readyKey: readyKey!, limit: 1, unit: 's' });
}

/** More jobs than one script call looks at, in a queue of their own. */
async function auditMany(engine: RedisEngine): Promise<unknown> {
  const ids = Array.from({ length: 11_000 }, (_, i) => `j${i}`);
  for (let seq = 1; seq <= 11; seq++) {
    const jobs = ids.slice((seq - 1) * 1_000, seq * 1_000);
    await engine.enqueue('many', callOf(jobs, seq, 'many'));
  }
  const { checked } = await engine.admin.audit('many');
  expect(checked).toBe(ids.length);
  return engine.admin.obliterate('many', true);
}

it('the example life of a queue uses every script', () => {
  const used = new Set(aWholeLife(q.engine).map(([name]) => name));
  expect([...used].toSorted(), 'the scripts that aWholeLife calls').toEqual(
    allScripts().map(byName).toSorted(),
  );
});

it('a script that the server has forgotten is sent again, and has its effect once', async () => {
  const shas = new Map(allScripts().map(({ name, sha }) => [name, sha]));
  for (const [, call] of aWholeLife(q.engine)) await call();
  await q.admin.flushdb();
  const answers: unknown[] = [];
  for (const [name, call] of aWholeLife(q.engine)) {
    await q.admin.script('FLUSH');
    answers.push(await call());
    expect([name, await q.admin.script('EXISTS', shas.get(name)!)]).toEqual([name, [1]]);
  }
  expect(answers[3]).toMatchObject({ kind: 'exchanged', lost: [] });
  expect(answers.at(-1)).toBe('obliterated');
});

it('calls over a new connection are made in the order in which they were started', async () => {
  await q.admin.script('FLUSH');
  await q.engineWith({}).enqueue(QUEUE, callOf([job('known', { priority: 1 })], 1, 'other'));
  const engine = q.engineWith({});
  await Promise.all([
    engine.enqueue(QUEUE, callOf([job('first')], 1)),
    engine.enqueue(QUEUE, { ...callOf([job('second')], 2), isRepeated: true }),
    engine.enqueue(QUEUE, callOf([job('third'), job('fourth', { hasOwnId: true })], 3)),
  ]);
  expect(await q.list('wait')).toEqual(['first', 'second', 'third', 'fourth']);
});

it('a user with few rights can run all scripts: with the commands in them, on the keys of the prefix only', async () => {
  await q.admin.call('ACL', 'SETUSER', 'few', 'reset', 'on', '>few', ...aclRules({ prefix: q.redis.prefix }));
  await q.admin.call('ACL', 'LOG', 'RESET');
  const url = new URL(q.redis.url);
  url.username = 'few';
  url.password = 'few';
  const engine = new RedisEngine({
    connection: url.href,
    prefix: q.redis.prefix,
    callMs: 5_000,
    limitsOf: () => LIMITS,
  });
  atEnd(() => engine.close());
  await engine.open();
  for (const [, call] of aWholeLife(engine)) await call();
  expect(await refusals(q.admin, 'few')).toEqual([]);

  const client = new Redis(url.href);
  atEnd(() => client.disconnect());
  await expect(client.call('ZRANGE', 'elsewhere', 0, -1)).rejects.toThrow('NOPERM');
});
