import { expect, it } from 'vitest';
import { NotRunningError, RedisRefusedError, RedisUnavailableError } from '#lib/errors.js';
import { counted } from '#lib/job/text.js';
import '#lib/engine/redis-engine.js';
import { Queue } from '#lib/producer/queue.js';
import { sourcesIn } from '../support/sources.js';
import { allScripts } from '#lib/engine/script.js';

it('errors of Redis name the call of the user, not the script of the engine', () => {
  expect(new RedisUnavailableError('enqueue-plain', 'no', 'x')).toMatchObject({
    verb: 'add',
    message: 'add: x; nothing was changed, the call can be made again',
  });
  expect(new RedisRefusedError('promote-now', 'OOM', 'x')).toMatchObject({ verb: 'promote' });
  expect(new NotRunningError('list-workers')).toMatchObject({
    verb: 'inspector.workers',
    message: 'inspector.workers: the queues are stopped; nothing was changed',
  });
  expect(new RedisRefusedError('set-limits', 'OOM', 'x')).toMatchObject({ verb: 'limits.set' });
  // The first step of get, counts and others.
  expect(new RedisUnavailableError('workers', 'no', 'x').verb).toBe('read the queue');
});

it('only errors of calls that write say that their effect is unknown', () => {
  const isSaid = (error: Error) => error.message.includes('whether it took effect is unknown');
  for (const { name, memory } of allScripts()) {
    const errors = [
      new RedisUnavailableError(name, 'unknown', 'x'),
      new RedisRefusedError(name, 'ERR', 'x', undefined, 'unknown'),
    ];
    expect([name, ...errors.map(isSaid)]).toEqual([name, memory !== 'read', memory !== 'read']);
  }
  // Single commands.
  expect(new RedisUnavailableError('queues', 'unknown', 'x').message).toBe('inspector.queues: x');
  expect(new RedisUnavailableError('serverInfo', 'unknown', 'x').message).not.toContain('effect');
});

it('every script and verb of the engines has the name of a public method, or another one in CALLS of lib/errors/store.ts', () => {
  const inCode = [...sourcesIn('lib/engine', ['.ts']), ...sourcesIn('lib/memory', ['.ts'])].flatMap(
    ({ text }) =>
      Array.from(text.matchAll(/\b(?:verbs\.on|verbs\.run|command)\(\s*'([\w-]+)'/g), ([, verb]) => verb!),
  );
  const verbs = [...allScripts().map(({ name }) => name), ...inCode];
  expect(verbs.length).toBeGreaterThan(100);
  const called = new Set(verbs.map((verb) => new NotRunningError(verb).verb));
  // Parts of a queue, and tasks.
  const others = ['bulkActs', 'connect', 'dispatch', 'events', 'upkeep'];
  const internal = [...called].filter(
    (name) => !/[ .]/.test(name) && !(name in Queue.prototype) && !others.includes(name),
  );
  expect(internal).toEqual([]);
});

it('nouns are singular or plural according to the number', () => {
  expect([0, 1, 2].map((count) => counted(count, 'job'))).toEqual(['0 jobs', '1 job', '2 jobs']);
});
