import { Controller, Injectable, type ModuleMetadata } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { Schedule } from '#lib/decorators/schedule.decorator.js';
import { defineJob } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootFaults, withQueues } from './fakes.js';

const EVERY = { every: '5m' } as const;

/** The faults for which an application with the queues `email` and `sms` does not start. */
const faultsOf = (metadata: ModuleMetadata, root = QueueModule.forRoot()) =>
  bootFaults(withQueues(['email', 'sms'], metadata, root));

/** The fault of one `@Schedule` on the handler `daily` of a class `Reports`. */
async function faultOf(...given: unknown[]): Promise<readonly string[]> {
  @Processor('email')
  class Reports {
    @Handle('daily')
    daily() {}
  }
  const { prototype } = Reports;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, 'daily')!;
  for (const one of given) Schedule(one as never)(prototype, 'daily', descriptor);
  return faultsOf({ providers: [Reports] });
}

const AT = '@Schedule() of Reports.daily';

describe('@Schedule: the rule', () => {
  it.each([
    [undefined, `${AT} must be an object, got undefined`],
    [null, `${AT} must be an object, got null (null)`],
    ['0 7 * * *', `${AT} must be an object, got "0 7 * * *" (string)`],
    [[], `${AT} must be an object, got [] (array)`],
    [{}, `${AT} must be an object with cron or every, got {} (object)`],
    [{ cron: '0 7 * * *', every: '5m' }, `${AT}.every must be left out if cron is given, got "5m" (string)`],
    [{ every: 999 }, `${AT}.every must be a duration from 1000 ms to 315576000000 ms, got 999 (number)`],
    [{ every: '5m', tz: 'UTC' }, `${AT}.tz must be left out if every is given`],
    [{ cron: '61 7 * * *' }, `${AT}.cron must be a cron expression that can be read`],
    [{ cron: '0 0 31 2 *' }, `${AT}.cron must be an expression that matches some date`],
    [
      { cron: '0 7 * * *', tz: 'Europe/Berlon' },
      `${AT}.tz must be an IANA time zone such as 'Europe/Berlin', got "Europe/Berlon" (string)`,
    ],
    [{ ...EVERY, overlap: 'queue' }, `${AT}.overlap must be one of 'allow', 'skip', 'replace'`],
    [{ ...EVERY, jitter: '2d' }, `${AT}.jitter must be a duration from 0 ms`],
    [{ ...EVERY, limit: 0 }, `${AT}.limit must be an integer from 1`],
    [
      { ...EVERY, zone: 'UTC' },
      `${AT}.zone is not an option; the options are id, name, data, options, queue, cron, tz, every, afterEnd, immediately, startAt, ` +
        'endAt, limit, jitter, overlap, missed, maxMissed',
    ],
    [
      { ...EVERY, timezone: 'UTC' },
      `${AT}.timezone is not an option; use the option tz for the time zone of a cron expression`,
    ],
    [
      { ...EVERY, startDate: 1 },
      `${AT}.startDate is not an option; use the option startAt for the first time of a schedule`,
    ],
    [{ ...EVERY, offset: 1 }, `${AT}.offset is not an option; use the option jitter`],
    [{ ...EVERY, ['__proto__']: 1 }, `${AT}.__proto__ is not an option`],
  ])('%j', async (given, said) => {
    expect(await faultOf(given)).toEqual([expect.stringContaining(said)]);
  });

  it('that cannot be read', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const trap = {
      get every(): string {
        throw new Error('no');
      },
    };
    expect(await faultOf(proxy)).toEqual([expect.stringContaining(`${AT} must be`)]);
    expect(await faultOf(trap)).toEqual([expect.stringContaining(`${AT} must be`)]);
  });

  it('reports everything that is wrong with it', async () => {
    expect(await faultOf({ every: 1, limit: -1, jitter: 'x' })).toHaveLength(3);
  });
});

describe('@Schedule: the job that is added', () => {
  it.each([
    [{ id: '' }, '@Schedule("") of Reports.daily.id must be 1 to 200 bytes of well-formed text'],
    [{ id: 7 }, `${AT}.id must be 1 to 200 bytes`],
    [{ id: 'a\nb' }, '@Schedule("a\\nb") of Reports.daily.id must be 1 to 200 bytes'],
    [{ id: 'x'.repeat(201) }, 'of Reports.daily.id must be 1 to 200 bytes'],
    [{ name: 7 }, `${AT}.name must be the name of a job, got 7 (number)`],
    [{ name: null }, `${AT}.name must be the name of a job, got null (null)`],
    [{ name: 'weekly' }, `${AT} adds jobs 'weekly', which Reports.daily does not handle`],
    [{ queue: 'sms' }, `${AT} is for queue "sms" (string), but its processor works on email`],
    [{ queue: {} }, `${AT} is for queue {} (object), but its processor works on email`],
    [{ data: () => 1 }, `${AT}.data is a function, which JSON cannot hold`],
    [{ data: 1n }, `${AT}.data is a BigInt`],
    [{ options: { id: 'x' } }, `${AT}.options.id must be left out: the id of each job`],
    [{ options: { delay: '1s' } }, `${AT}.options.delay must be left out: the schedule decides when`],
    [{ options: { attempts: 0 } }, `${AT}.options.attempts must be an integer`],
    [{ options: 'fast' }, `${AT}.options must be an object`],
  ])('%s', async (given, said) => {
    expect(await faultOf({ ...EVERY, ...given })).toEqual([expect.stringContaining(said)]);
  });

  it('data beyond the limit of the queue', async () => {
    @Processor('email')
    class Reports {
      @Handle('daily')
      @Schedule({ ...EVERY, data: 'x'.repeat(2_000) })
      daily() {}
    }
    const found = await faultsOf({ providers: [Reports] }, QueueModule.forRoot({ maxPayloadBytes: 1_000 }));
    expect(found).toEqual([
      `${AT}: the data of the job takes 2002 bytes, more than maxPayloadBytes (1000); ` +
        'store it elsewhere and put its address into the job, or raise maxPayloadBytes',
    ]);
  });

  it('data that the schema of the handler refuses, also if it is left out', async () => {
    const daily = defineJob('email', 'daily', z.object({ office: z.enum(['Berlin']) }));
    @Processor('email')
    class Reports {
      @Handle(daily)
      @Schedule({ ...EVERY, id: 'a', data: { office: 'Bern' } })
      @Schedule({ ...EVERY, id: 'b' })
      daily(_job: Job<{ office: 'Berlin' }>) {}
    }
    expect(await faultsOf({ providers: [Reports] })).toEqual([
      expect.stringMatching(/^@Schedule\("a"\) of Reports\.daily: the data of job 'daily' .*office/),
      expect.stringMatching(/^@Schedule\("b"\) of Reports\.daily: the data of job 'daily'/),
    ]);
  });

  it('an id twice in a queue, in one class or in several', async () => {
    @Processor('email')
    class A {
      @Handle('x')
      @Schedule(EVERY)
      @Schedule({ every: '1h' })
      x() {}
    }
    @Processor('email')
    class B {
      @Handle('y')
      @Schedule({ ...EVERY, id: 'z' })
      y() {}
      @Handle('z')
      @Schedule(EVERY)
      z() {}
    }
    @Processor('sms')
    class Other {
      @Handle('x')
      @Schedule(EVERY)
      x() {}
    }
    expect(await faultsOf({ providers: [A, B, Other] })).toEqual([
      "schedule 'x' of queue 'email' is declared twice: @Schedule() of A.x and @Schedule() of A.x; give each its own id",
      "schedule 'z' of queue 'email' is declared twice: @Schedule(\"z\") of B.y and @Schedule() of B.z; give each its own id",
    ]);
  });

  it('no name if there are several handles, or the catch-all; a name that another method handles', async () => {
    @Processor('email')
    class Reports {
      @Handle('a')
      @Handle('b')
      @Schedule(EVERY)
      several() {}
      @Handle()
      @Schedule(EVERY)
      @Schedule({ ...EVERY, id: 'stolen', name: 'a' })
      @Schedule({ ...EVERY, id: 'fine', name: 'anything' })
      rest() {}
    }
    expect(await faultsOf({ providers: [Reports] })).toEqual([
      '@Schedule() of Reports.several needs the option "name", because its method handles several names',
      '@Schedule() of Reports.rest needs the option "name", because its method handles every other name',
      '@Schedule("stolen") of Reports.rest adds jobs \'a\', which Reports.rest does not handle; ' +
        'use a name that it handles, or put the schedule on the method that does',
    ]);
  });
});

describe('@Schedule: its position', () => {
  it('without @Handle', async () => {
    @Processor('email')
    class Reports {
      @Schedule(EVERY)
      daily() {}
    }
    expect(await faultsOf({ providers: [Reports] })).toEqual([
      "@Schedule() is on Reports.daily, which has no @Handle; add @Handle('name') to run the jobs that the schedule adds",
    ]);
  });

  it('in a class without @Processor, provider or controller', async () => {
    @Injectable()
    class ReportService {
      @Schedule(EVERY)
      daily() {}
    }
    @Controller()
    class ReportController {
      @Schedule({ ...EVERY, id: 'weekly' })
      weekly() {}
    }
    expect(await faultsOf({ providers: [ReportService], controllers: [ReportController] })).toEqual([
      "ReportService.daily has @Schedule(), but ReportService has no @Processor; add @Processor('queue') to the class",
      'ReportController.weekly has @Schedule("weekly"), but ReportController has no @Processor; ' +
        "add @Processor('queue') to the class",
    ]);
  });

  it('on something that is not a method, all at once, also in a base class', async () => {
    const SYMBOL = Symbol('secret');
    const anywhere = Schedule as unknown as (options: unknown) => (...place: any[]) => void;
    class Base {
      @anywhere(EVERY)
      static inherited() {}
    }
    @Processor('email')
    @anywhere(EVERY)
    class Reports extends Base {
      @anywhere({ ...EVERY, id: 'gone' })
      static nightly() {}
      @anywhere(EVERY)
      get daily() {
        return 1;
      }
      @anywhere(EVERY)
      property = 1;
      @anywhere(EVERY)
      [SYMBOL]() {}
      @Handle('ok')
      ok(@anywhere(EVERY) _job: Job) {}
    }
    @Processor('sms')
    class Others extends Base {
      @Handle('ok')
      ok() {}
    }
    const text = (what: string) =>
      `, which is ${what}; put it next to @Handle on an instance method with a plain name`;
    expect(new Set(await faultsOf({ providers: [Reports, Others] }))).toEqual(
      new Set([
        `@Schedule() is on Reports${text('a class')}`,
        `@Schedule("gone") is on Reports.nightly${text('static')}`,
        `@Schedule() is on Reports.daily${text('a getter or setter')}`,
        `@Schedule() is on Reports.property${text('a property')}`,
        `@Schedule() is on Reports.Symbol(secret)${text('named by a symbol')}`,
        `@Schedule() is on Reports.ok${text('a parameter')}`,
        `@Schedule() is on Base.inherited${text('static')}`,
      ]),
    );
  });

  it('on a method that an override hides', async () => {
    @Processor('email')
    class Reports {
      @Handle('daily')
      @Schedule(EVERY)
      daily() {}
    }
    @Processor('sms')
    class Loud extends Reports {
      @Handle('daily')
      override daily() {}
    }
    expect(await faultsOf({ providers: [Loud] })).toEqual([
      'Loud.daily overrides Reports.daily, which has @Schedule(), and so hides it; ' +
        'decorate the override too, or give it another name',
    ]);
  });

  it('in a processor of a queue that is not registered: only that is reported', async () => {
    @Processor('emial')
    class Misspelt {
      @Handle('daily')
      @Schedule(EVERY)
      daily() {}
    }
    expect(await faultsOf({ providers: [Misspelt] })).toEqual([
      expect.stringContaining("@Processor of Misspelt: queue 'emial' is not registered"),
    ]);
  });

  it('is listed with other faults in one error', async () => {
    @Processor('email', { concurrency: 0 })
    class Reports {
      @Handle('daily')
      @Schedule({ cron: 'daily' })
      daily() {}
    }
    expect(await faultsOf({ providers: [Reports] }, QueueModule.forRoot({ prefix: '' }))).toHaveLength(3);
  });
});

it.each([
  [{ owner: '' }, 'forRoot().schedules.owner must be 1 to 64 characters out of A-Z a-z 0-9 . _ -'],
  [{ owner: 'my app' }, 'forRoot().schedules.owner must be 1 to 64 characters'],
  [{ owner: 7 }, 'forRoot().schedules.owner must be'],
  [{ name: 'x' }, 'forRoot().schedules.name is not an option'],
  ['app', 'forRoot().schedules must be an object'],
])('forRoot({ schedules: %j }) is refused', async (schedules, said) => {
  const root = QueueModule.forRoot({ schedules: schedules as never });
  expect(await faultsOf({}, root)).toEqual([expect.stringContaining(said)]);
});
