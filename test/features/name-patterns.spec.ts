import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { Schedule } from '#lib/decorators/schedule.decorator.js';
import { defineJob } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import { bootQueue, outcomeOf, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';
import { bootFaults, startApp, withQueues } from './fakes.js';

const redis = useRedis();
const starred = defineJob('email', 'a*b');

@Processor('email')
class Patterns {
  @Handle('*')
  any(job: Job) {
    return `any ${job.name}`;
  }
  @Handle('email.*')
  email(job: Job) {
    return `email ${job.name}`;
  }
  @Handle('email.bulk.*')
  bulk(job: Job) {
    return `bulk ${job.name}`;
  }
  @Handle('email.welcome')
  welcome(job: Job) {
    return `welcome ${job.name}`;
  }
  @Handle(starred)
  star(job: Job) {
    return `star ${job.name}`;
  }
}

describe('job names by pattern', () => {
  it('go to the exact name, else to the narrowest pattern', async () => {
    const { pool } = await startApp(['email'], { providers: [Patterns] });
    // Twice: the second call uses the remembered match.
    for (let i = 0; i < 2; i++) {
      expect(await pool('email').run('email.welcome')).toBe('welcome email.welcome');
      expect(await pool('email').run('email.bulk.digest')).toBe('bulk email.bulk.digest');
      expect(await pool('email').run('email.')).toBe('email email.');
      expect(await pool('email').run('sms')).toBe('any sms');
      expect(await pool('email').run('a*b')).toBe('star a*b');
      // A definition has a name, not a pattern.
      expect(await pool('email').run('axb')).toBe('any axb');
    }
    expect(pool('email').plan.names()).toEqual(
      expect.arrayContaining([
        'email.welcome',
        'a*b',
        '',
        '\nemail.*',
        '\nemail.bulk.*',
        'email.bulk.digest',
        '\n',
      ]),
    );
  });

  it('remember no more than a bounded number of names', async () => {
    @Processor('email')
    class Some {
      @Handle('n.*')
      some(job: Job) {
        return job.name;
      }
    }
    const { pool } = await startApp(['email'], { providers: [Some] });
    const { find, names } = pool('email').plan;
    for (let i = 0; i < 2_500; i++) find(`n.${i}`);
    expect(names().length).toBeLessThan(1_010);
    expect(find('other')).toBeUndefined();
  });

  it('are refused if neither of two patterns is narrower, or if one is used twice', async () => {
    @Processor('email')
    class Other {
      @Handle('*.failed')
      failed() {}
      @Handle('email.*')
      again() {}
      @Handle()
      rest() {}
    }
    expect(await bootFaults(withQueues(['email'], { providers: [Patterns, Other] }))).toEqual([
      "queue 'email' has 2 handlers for every other job: Patterns.any and Other.rest; keep one @Handle() without a name",
      "job 'email.*' of queue 'email' has 2 handlers: Patterns.email and Other.again; keep one",
      "the patterns 'email.bulk.*' (Patterns.bulk) and '*.failed' (Other.failed) of queue 'email' fit some of the same job " +
        'names, and neither contains the other; make one narrower, or handle those names in one method',
      "the patterns '*.failed' (Other.failed) and 'email.*' (Other.again) of queue 'email' fit some of the same job " +
        'names, and neither contains the other; make one narrower, or handle those names in one method',
    ]);
  });

  it('are known to schedules: the method that gets the jobs of that name', async () => {
    @Processor('email')
    class Scheduled {
      @Handle('report.*')
      @Schedule({ every: '1h', name: 'report.daily' })
      report() {}
      @Handle('report.weekly')
      weekly() {}
    }
    await startApp(['email'], { providers: [Scheduled] });
    @Processor('email')
    class Wrong {
      @Handle('report.*')
      @Schedule({ every: '1h', name: 'report.weekly' })
      @Schedule({ every: '1h' })
      report() {}
      @Handle('report.weekly')
      weekly() {}
    }
    expect(await bootFaults(withQueues(['email'], { providers: [Wrong] }))).toEqual([
      "@Schedule() of Wrong.report adds jobs 'report.weekly', which Wrong.report does not handle; " +
        'use a name that it handles, or put the schedule on the method that does',
      '@Schedule() of Wrong.report needs the option "name", because its method handles names by pattern',
    ]);
  });

  it('run on Redis, and a process that handles them by pattern keeps others from making such jobs dead', async () => {
    const queue = { unknownJobTimeout: '2s', defaults: { retention: '1h' } } as const;
    const other = await bootQueue(redis, { handlers: { known: () => 1 }, queue });
    const able = await bootQueue(redis, { handlers: { 'mail.*': (job) => job.name }, queue, watch: false });
    expect(await outcomeOf(other, 'mail.welcome', 1)).toEqual(['completed', 'mail.welcome']);
    able.runtime.pause('work');
    const { id } = await other.queue.add('mail.digest', 1);
    const claims = () => other.said.values.filter((event) => event.type === 'active').length;
    const since = performance.now();
    await until(() => claims() >= 6 && performance.now() - since > 4_500, { timeout: 30_000 });
    expect((await other.queue.get(id))?.state).not.toBe('dead');
    able.runtime.resume('work');
    await until(async () => (await other.queue.get(id))?.state === 'completed', PATIENT);
  });
});
