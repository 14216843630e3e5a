import { describe, expect, it } from 'vitest';
import { Snooze, type Job } from '#lib/job/job.js';
import { bootQueue, PATIENT, type Handlers } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const redis = useRedis();

describe('a deadline', () => {
  it('that has passed keeps a job from being started: it is dead as expired', async () => {
    let runs = 0;
    const { queue, ended } = await bootQueue(redis, { handlers: { job: () => void (runs += 1) } });
    await queue.add('job', 1, { id: 'a', deadline: new Date(Date.now() - 1_000) });
    expect(await ended('a')).toMatchObject({ type: 'dead', reason: 'expired', attempt: 0 });
    expect((await queue.get('a'))?.failure?.message).toMatch(/^its deadline was \d{4}-.*Z$/);
    expect(runs).toBe(0);
  });

  it('aborts the attempt that runs, which is not retried', async () => {
    const reasons: unknown[] = [];
    const handlers: Handlers = {
      job: ({ signal }: Job) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => {
            reasons.push((signal.reason as { reason: string }).reason);
            reject(signal.reason as Error);
          }),
        ),
    };
    const { queue, ended } = await bootQueue(redis, { handlers });
    await queue.add('job', 1, { id: 'a', deadline: Date.now() + 300, timeout: '1h' });
    expect(await ended('a')).toMatchObject({ type: 'dead', reason: 'expired', attempt: 1 });
    expect(reasons).toEqual(['deadline']);
  });

  it('before the next attempt makes the job dead at once, with its error', async () => {
    const handlers: Handlers = {
      job: () => {
        throw new RangeError('no luck');
      },
      later: () => {
        throw new Snooze('2h');
      },
    };
    const { queue, ended } = await bootQueue(redis, { handlers });
    const options = { deadline: Date.now() + 3_600_000, backoff: '2h' } as const;
    await queue.add('job', 1, { id: 'a', ...options });
    await queue.add('later', 1, { id: 'b', ...options });
    expect(await ended('a')).toMatchObject({
      type: 'dead',
      reason: 'expired',
      error: { message: 'no luck' },
    });
    expect(await ended('b')).toMatchObject({ type: 'dead', reason: 'expired' });
  });
});

describe('retryFor', () => {
  const failing = (): { runs: string[]; handlers: Handlers } => {
    const runs: string[] = [];
    const job = ({ id }: Job) => {
      runs.push(id);
      throw new Error('no luck');
    };
    return { runs, handlers: { job } };
  };

  it('is the only limit if attempts is not set', async () => {
    const { runs, handlers } = failing();
    const defaults = { backoff: 1, retryFor: '1h' } as const;
    const { queue } = await bootQueue(redis, { handlers, queue: { defaults } });
    await queue.add('job', 1, { id: 'a' });
    await until(() => runs.length > 5, PATIENT);
    expect(await queue.get('a')).toMatchObject({ attempts: Number.MAX_SAFE_INTEGER });
    await queue.cancel('a');
  });

  it('ends a job whose next attempt would start later, counted from when it could first have run', async () => {
    const { runs, handlers } = failing();
    const { queue, ended } = await bootQueue(redis, { handlers });
    await queue.add('job', 1, { id: 'a', retryFor: '1m', backoff: '2m' });
    await queue.add('job', 1, { id: 'b', retryFor: '5s', delay: 50, backoff: [0, 0, '6s'] });
    expect(await ended('a')).toMatchObject({ type: 'dead', reason: 'retries-exhausted', attempt: 1 });
    expect(await ended('b')).toMatchObject({ type: 'dead', reason: 'retries-exhausted', attempt: 3 });
    expect(runs.filter((id) => id === 'b')).toHaveLength(3);
  });

  it('applies together with attempts, wherever these are set', async () => {
    const { handlers } = failing();
    const { queue, ended } = await bootQueue(redis, {
      handlers,
      queue: { defaults: { attempts: 2, backoff: 0 } },
    });
    await queue.add('job', 1, { id: 'a', retryFor: '1h' });
    await queue.add('job', 1, { id: 'b', retryFor: '1h', attempts: 4 });
    expect(await ended('a')).toMatchObject({ reason: 'retries-exhausted', attempt: 2 });
    expect(await ended('b')).toMatchObject({ reason: 'retries-exhausted', attempt: 4 });
  });
});

it('a Snooze of 0 still waits for 100 ms', async () => {
  let runs = 0;
  const handlers: Handlers = {
    job: () => {
      if ((runs += 1) === 1) throw new Snooze(0);
    },
  };
  const { queue, said, ended } = await bootQueue(redis, { handlers });
  await queue.add('job', 1, { id: 'a' });
  await ended('a');
  expect(said.values.find(({ type }) => type === 'delayed')).toMatchObject({ delayMs: 100 });
});
