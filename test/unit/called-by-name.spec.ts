import { expect, it } from 'vitest';
import { NotRunningError, RedisRefusedError, RedisUnavailableError } from '#lib/errors.js';
import { counted } from '#lib/job/text.js';
import '#lib/engine/redis-engine.js';
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
  // A name with a hyphen is one of ours.
  const internal = allScripts()
    .map(({ name }) => new NotRunningError(name).verb)
    .filter((verb) => verb.includes('-'));
  expect(internal, 'scripts without a public name in CALLS of lib/errors/store.ts').toEqual([]);
  expect(allScripts().length).toBeGreaterThan(30);
});

it('nouns are singular or plural according to the number', () => {
  expect([0, 1, 2].map((count) => counted(count, 'job'))).toEqual(['0 jobs', '1 job', '2 jobs']);
});
