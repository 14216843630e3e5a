import { expect, it } from 'vitest';
import { inSteps } from '#lib/contract/retry.js';
import { RedisRefusedError, RedisUnavailableError } from '#lib/errors.js';

async function failing(error: unknown, ...counts: number[]): Promise<unknown> {
  try {
    return await inSteps((changed) => {
      counts.forEach(changed);
      return Promise.reject(error);
    });
  } catch (thrown) {
    return thrown;
  }
}

it('an error of the first step stays as it is', async () => {
  const error = new RedisUnavailableError('remove', 'no', 'the connection is down');
  expect(await failing(error)).toBe(error);
  expect(await failing(error, 0, 0)).toBe(error);
});

it('an error after a change says that a part took effect, and keeps the call, the reason and the advice', async () => {
  // `promote` is also a verb of the engine, which has another name for users.
  const away = new RedisUnavailableError('promoteNow', 'no', 'the connection is down');
  expect(await failing(away, 2, 0)).toMatchObject({
    applied: 'partly',
    verb: 'promote',
    message: 'promote: the connection is down; a part of it took effect',
    cause: away,
  });
  const refused = new RedisRefusedError('retryDead', 'OOM', 'OOM command not allowed: maxmemory');
  expect(await failing(refused, 1)).toMatchObject({
    applied: 'partly',
    verb: 'dead.retry',
    reply: 'OOM',
    message:
      'dead.retry: Redis refused, a part of it took effect: OOM command not allowed: maxmemory ' +
      '(raise maxmemory or let the workers drain the backlog, which they can at maxmemory)',
  });
  const inner = new RedisUnavailableError('clean', 'partly', 'the connection is down');
  expect(await failing(inner, 1)).toBe(inner);
  const read = new RedisUnavailableError('page', 'unknown', 'Redis did not answer in time');
  expect(await failing(read, 1)).toMatchObject({ applied: 'partly', verb: 'jobs' });
  const other = new TypeError('a fault');
  expect(await failing(other, 1)).toBe(other);
});
