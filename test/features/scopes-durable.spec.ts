import { Inject, Injectable, Scope, UseGuards } from '@nestjs/common';
import { ContextIdFactory, REQUEST, type ContextId, type ContextIdStrategy } from '@nestjs/core';
import { afterEach, describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { JOB_REF } from '#lib/decorators/metadata.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import type { Job } from '#lib/job/job.js';
import { Counted, jobOf, madeOf, runnerFor } from './scopes-support.js';

type TenantJob = Job<{ tenant: string }>;

/** One tree for each tenant, as the documentation of Nest shows. */
class ByTenant implements ContextIdStrategy<TenantJob> {
  readonly seen: TenantJob[] = [];
  private readonly trees = new Map<string, ContextId>();
  constructor(private readonly payload: (tenant: string) => unknown = (tenant) => ({ tenant })) {}

  attach(contextId: ContextId, job: TenantJob) {
    this.seen.push(job);
    const { tenant } = job.data;
    const tree = this.trees.get(tenant) ?? ContextIdFactory.create();
    this.trees.set(tenant, tree);
    const resolve = (info: { isTreeDurable: boolean }) => (info.isTreeDurable ? tree : contextId);
    return { resolve, payload: this.payload(tenant) };
  }
}

afterEach(() => ContextIdFactory.apply(undefined as never));

@Injectable({ scope: Scope.REQUEST, durable: true })
class Database extends Counted {
  constructor(@Inject(REQUEST) readonly of: { tenant: string }) {
    super();
  }
}

describe('a durable processor', () => {
  it('is created once for each tenant, with its dependencies and enhancers, and gets the payload', async () => {
    @Injectable({ scope: Scope.REQUEST, durable: true })
    class Licence extends Counted {
      constructor(readonly database: Database) {
        super();
      }
      canActivate() {
        return this.database.of.tenant !== 'unlicensed';
      }
    }
    @UseGuards(Licence)
    @Processor('email', { scope: Scope.REQUEST, durable: true })
    class Mails extends Counted {
      constructor(
        readonly database: Database,
        @Inject(JOB_REF) readonly ref: unknown,
      ) {
        super();
      }
      @Handle('welcome')
      welcome(job: TenantJob) {
        return { nr: this.nr, of: this.database.of.tenant, ref: this.ref, job: job.id };
      }
    }
    const strategy = new ByTenant();
    ContextIdFactory.apply(strategy);
    const { run } = await runnerFor({ providers: [Mails, Database] });
    const jobs = ['a', 'b', 'a', 'a', 'b'].map((tenant) => jobOf({ tenant }));
    const answers = await Promise.all(jobs.map(run));
    expect(answers.map(({ of, ref }) => [of, ref])).toEqual(
      jobs.map(({ data }) => [data.tenant, { tenant: data.tenant }]),
    );
    expect(answers.map(({ job }) => job)).toEqual(jobs.map(({ id }) => id));
    expect([madeOf(Mails), madeOf(Database), madeOf(Licence)]).toEqual([2, 2, 2]);
    expect((await run(jobOf({ tenant: 'a' }))).nr).toBe(answers[0]!.nr);
    await expect(run(jobOf({ tenant: 'unlicensed' }))).rejects.toThrow('Forbidden');
    expect(strategy.seen.slice(0, 5)).toEqual(jobs);
  });

  it('is never given a job if there is no payload, because it outlives the job', async () => {
    @Processor('email', { scope: Scope.REQUEST, durable: true })
    class Mails extends Counted {
      constructor(@Inject(JOB_REF) readonly ref: unknown) {
        super();
      }
      @Handle('welcome')
      welcome() {
        return this.ref;
      }
    }
    ContextIdFactory.apply(new ByTenant(() => undefined));
    const { run } = await runnerFor({ providers: [Mails] });
    expect(await run(jobOf({ tenant: 'a' }))).toBeUndefined();
    expect(await run(jobOf({ tenant: 'a' }))).toBeUndefined();
    expect(madeOf(Mails)).toBe(1);
  });

  it('is created for each job, and given the job, if the application has no strategy', async () => {
    @Processor('email', { scope: Scope.REQUEST, durable: true })
    class Mails extends Counted {
      constructor(@Inject(JOB_REF) readonly ref: unknown) {
        super();
      }
      @Handle('welcome')
      welcome(job: Job) {
        return this.ref === job;
      }
    }
    const { run } = await runnerFor({ providers: [Mails] });
    expect([await run(jobOf({})), await run(jobOf({}))]).toEqual([true, true]);
    expect(madeOf(Mails)).toBe(2);
  });

  it('fails each job as long as it cannot be created, and is created later', async () => {
    let isDown = true;
    @Processor('email', { scope: Scope.REQUEST, durable: true })
    class Mails extends Counted {
      constructor(@Inject(REQUEST) readonly of: { tenant: string }) {
        super();
        if (isDown) throw new Error(`the database of ${of.tenant} is down`);
      }
      @Handle('welcome')
      welcome() {
        return this.of.tenant;
      }
    }
    ContextIdFactory.apply(new ByTenant());
    const { run } = await runnerFor({ providers: [Mails] });
    const both = await Promise.allSettled([run(jobOf({ tenant: 'a' })), run(jobOf({ tenant: 'a' }))]);
    const messages = both.map((end) => (end.status === 'rejected' ? String(end.reason.message) : 'it ran'));
    for (const message of messages) {
      expect(message).toMatch(/^Mails could not be created for job .*: the database of a is down$/);
    }
    isDown = false;
    expect(await run(jobOf({ tenant: 'a' }))).toBe('a');
  });
});

describe('a request-scoped processor', () => {
  it('shares durable providers with its tenant, and gets its own job', async () => {
    @Processor('email', { scope: Scope.REQUEST })
    class Mails extends Counted {
      constructor(
        readonly database: Database,
        @Inject(JOB_REF) readonly ref: unknown,
      ) {
        super();
      }
      @Handle('welcome')
      welcome(job: Job) {
        return { own: this.ref === job, database: this.database };
      }
    }
    ContextIdFactory.apply(new ByTenant());
    const { run } = await runnerFor({ providers: [Mails, Database] });
    const before = madeOf(Database);
    const jobs = ['a', 'b', 'a'].map((tenant) => jobOf({ tenant }));
    const [first, second, third] = await Promise.all(jobs.map(run));
    expect([first, second, third].map(({ own }) => own)).toEqual([true, true, true]);
    expect(third.database).toBe(first.database);
    expect(second.database).not.toBe(first.database);
    expect([first, second].map(({ database }) => database.of)).toEqual([{ tenant: 'a' }, { tenant: 'b' }]);
    expect([madeOf(Mails), madeOf(Database) - before]).toEqual([3, 2]);
  });

  it('gets a message that explains that the strategy also gets jobs, if it was written for requests', async () => {
    @Processor('email', { scope: Scope.REQUEST })
    class Mails {
      @Handle('welcome')
      welcome() {}
    }
    ContextIdFactory.apply({
      attach: (_, request: { headers: Record<string, string> }) => {
        void request.headers['x-tenant'];
        return undefined;
      },
    });
    const { run } = await runnerFor({ providers: [Mails] });
    const job = jobOf({});
    await expect(run(job)).rejects.toThrow(
      'the ContextIdStrategy of the application, which gets jobs as well as requests, failed ' +
        `for job "${job.id}" of queue 'email': Cannot read properties of undefined (reading 'x-tenant')`,
    );
  });
});
