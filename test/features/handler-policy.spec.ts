import { expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { UnrecoverableError } from '#lib/errors.js';
import { defineJob } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { bootQueue, brief } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { bootFaults, withQueues } from './fakes.js';

const redis = useRedis();
const slow = defineJob<number, 'slow'>('work', 'slow');

@Processor('work')
class Policies {
  @Handle('flaky', { attempts: 2, backoff: (attempt) => attempt + 6 })
  @Handle('steady')
  flaky(job: Job) {
    throw new Error(`attempt ${job.attempt} of ${job.attempts}`);
  }

  @Handle(slow, { timeout: '20ms', attempts: 1 })
  async slow(job: Job) {
    await sleep(60_000, undefined, { signal: job.signal });
  }

  @Handle('patient', { attempts: 9, retryFor: '1m', backoff: [0, 0, 0, '2m'] })
  patient() {
    throw new Error('no luck');
  }

  @Handle('kept.*', { retention: '1h' })
  kept(job: Job) {
    if (job.data === 'no') throw new UnrecoverableError('no');
    return 1;
  }
}

it('applies in the worker to jobs added by a process without the handler; it overrides the queue, and the job overrides it', async () => {
  const defaults = { attempts: 3, backoff: 5, timeout: '1m' } as const;
  const producer = await bootQueue(redis, { root: { role: 'producer' } });
  const { ended, said, queue } = await bootQueue(redis, { providers: [Policies], queue: { defaults } });
  const runs = async (name: string, options?: object) => {
    const { id } = await producer.queue.add(name, 1, options);
    const end = await ended(id);
    const waits = said.values.flatMap((e) => (e.type === 'retrying' && e.jobId === id ? [e.delayMs] : []));
    return { end, waits, job: await queue.get(id) };
  };
  const own = await runs('flaky');
  expect(own).toMatchObject({ end: { type: 'dead', attempt: 2 }, waits: [7] });
  expect(own.job?.failure?.message).toBe('attempt 2 of 2');
  // The other name of this method has the policy of the queue.
  expect(await runs('steady')).toMatchObject({ end: { attempt: 3 }, waits: [5, 5] });
  // Each option of the job overrides that of the handler.
  expect(await runs('flaky', { backoff: 1 })).toMatchObject({ end: { attempt: 2 }, waits: [1] });
  expect(await runs('flaky', { attempts: 3 })).toMatchObject({ end: { attempt: 3 }, waits: [7, 8] });

  // The fourth wait would end too late. `retryFor` of the job ends the retries.
  expect(await runs('patient')).toMatchObject({ end: { type: 'dead', attempt: 4 }, waits: [0, 0, 0] });
  expect(await runs('patient', { retryFor: 1, backoff: 20 })).toMatchObject({ end: { attempt: 1 } });

  const { end } = await runs('slow');
  expect(brief(end)).toMatchObject({ type: 'dead', attempt: 1, error: { name: 'JobAbortedError' } });
  expect(await runs('kept.a')).toMatchObject({
    end: { type: 'completed' },
    job: { state: 'completed', result: 1 },
  });
  expect(await runs('kept.b', { retention: 0 })).toMatchObject({ end: { type: 'completed' }, job: null });
});

it('is checked at bootstrap, all mistakes at once', async () => {
  @Processor('email')
  class Wrong {
    @Handle('a', { attempts: 0, backoff: 'soon', timeuot: 1 } as never)
    a() {}
    @Handle('b', 3 as never)
    b() {}
    @Handle('c', { expiresIn: '1h' } as never)
    c() {}
  }
  expect(await bootFaults(withQueues(['email'], { providers: [Wrong] }))).toEqual([
    "Wrong.a: @Handle('a').attempts must be an integer from 1 to 9007199254740991, got 0 (number)",
    "Wrong.a: @Handle('a').timeuot is not an option; did you mean timeout?",
    `Wrong.a: @Handle('a').backoff must be a duration in ms or like '10s', or a name from the option "backoffs" of forRoot or registerQueue, got "soon" (string)`,
    "Wrong.b: @Handle('b') must be an object, got 3 (number)",
    "Wrong.c: @Handle('c').expiresIn is not an option; the options are attempts, backoff, timeout, retention, retryFor",
  ]);
});
