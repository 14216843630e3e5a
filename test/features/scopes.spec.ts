import {
  Inject,
  Injectable,
  Scope,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  createParamDecorator,
  type CallHandler,
  type ExecutionContext,
  type PipeTransform,
  type Type,
} from '@nestjs/common';
import { ContextIdFactory, ModuleRef, REQUEST } from '@nestjs/core';
import { map } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { JOB_REF } from '#lib/decorators/metadata.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { JobAbortedError, ProcessorScopeError, UnrecoverableError } from '#lib/errors.js';
import { QueueExecutionContext } from '#lib/handlers/queue-context.js';
import type { Job } from '#lib/job/job.js';
import { gate } from './fakes.js';
import { Counted, jobOf, madeOf, runnerFor } from './scopes-support.js';

describe('a request-scoped processor', () => {
  @Injectable({ scope: Scope.REQUEST })
  class Tenant {
    constructor(@Inject(JOB_REF) readonly job: Job<{ tenant: string }>) {}
  }

  @Injectable({ scope: Scope.REQUEST })
  class Guard {
    canActivate() {
      return true;
    }
  }
  @Injectable({ scope: Scope.REQUEST })
  class Interceptor {
    intercept(_: unknown, next: CallHandler) {
      return next.handle();
    }
  }
  @Injectable({ scope: Scope.REQUEST })
  class Pipe implements PipeTransform {
    transform(value: unknown) {
      return value;
    }
  }
  @Injectable({ scope: Scope.REQUEST })
  class Filter {
    catch(error: unknown) {
      throw error;
    }
  }

  function scopedBy(how: string): Type {
    @Processor('email', { scope: Scope.REQUEST })
    class ByOption extends Counted {
      @Handle('welcome')
      welcome() {
        return this.nr;
      }
    }
    @Processor('email')
    @Injectable({ scope: Scope.REQUEST })
    class ByInjectable extends Counted {
      @Handle('welcome')
      welcome() {
        return this.nr;
      }
    }
    @Processor('email')
    class ByDependency extends Counted {
      constructor(readonly tenant: Tenant) {
        super();
      }
      @Handle('welcome')
      welcome() {
        return this.nr;
      }
    }
    @Processor('email')
    class ByProperty extends Counted {
      @Inject(Tenant) readonly tenant!: Tenant;
      @Handle('welcome')
      welcome() {
        return this.nr;
      }
    }
    @Processor('email')
    class ByGuard extends Counted {
      @UseGuards(Guard)
      @Handle('welcome')
      welcome() {
        return this.nr;
      }
    }
    @Processor('email')
    class ByInterceptor extends Counted {
      @UseInterceptors(Interceptor)
      @Handle('welcome')
      welcome() {
        return this.nr;
      }
    }
    @UsePipes(Pipe)
    @Processor('email')
    class ByPipe extends Counted {
      @Handle('welcome')
      welcome() {
        return this.nr;
      }
    }
    @UseFilters(Filter)
    @Processor('email')
    class ByFilter extends Counted {
      @Handle('welcome')
      welcome() {
        return this.nr;
      }
    }
    const types: Record<string, Type> = {
      'its option': ByOption,
      '@Injectable': ByInjectable,
      'what it injects': ByDependency,
      'a property it injects': ByProperty,
      'a guard': ByGuard,
      'an interceptor': ByInterceptor,
      'a pipe': ByPipe,
      'a filter': ByFilter,
    };
    return types[how]!;
  }

  it.each([
    'its option',
    '@Injectable',
    'what it injects',
    'a property it injects',
    'a guard',
    'an interceptor',
    'a pipe',
    'a filter',
  ])('by %s is created for each job, and not before', async (how) => {
    const type = scopedBy(how);
    const { run } = await runnerFor({ providers: [type, Tenant] });
    expect(madeOf(type)).toBe(0);
    expect(await run(jobOf({ tenant: 'a' }))).toBe(1);
    expect(await run(jobOf({ tenant: 'b' }))).toBe(2);
    expect(madeOf(type)).toBe(2);
  });

  it('gets the job that its handler receives, as JOB_REF and as REQUEST, and so do its dependencies', async () => {
    @Injectable()
    class Deep {
      constructor(readonly tenant: Tenant) {}
    }
    @Processor('email')
    class Mails {
      constructor(
        readonly deep: Deep,
        @Inject(JOB_REF) readonly ref: Job,
        @Inject(REQUEST) readonly request: unknown,
      ) {}
      @Handle('welcome')
      welcome(job: Job) {
        return [this.ref, this.request, this.deep.tenant.job].every((one) => one === job);
      }
    }
    const { run } = await runnerFor({ providers: [Mails, Deep, Tenant] });
    const job = jobOf({ tenant: 'a' });
    const before = Object.keys(job);
    expect(await run(job)).toBe(true);
    expect(Object.keys(job).filter((key) => key !== 'stage')).toEqual(before);
  });

  it('keeps fifty jobs at once apart, and creates each provider once per job', async () => {
    const held = gate();
    @Injectable({ scope: Scope.REQUEST })
    class Session extends Counted {
      readonly seen: string[] = [];
      constructor(@Inject(JOB_REF) readonly job: Job<{ tenant: string }>) {
        super();
      }
    }
    @Injectable()
    class Reader {
      constructor(readonly session: Session) {}
    }
    @Injectable()
    class Writer {
      constructor(readonly session: Session) {}
    }
    @Injectable()
    class Singleton extends Counted {}
    @Processor('email', { concurrency: 50 })
    class Mails extends Counted {
      constructor(
        readonly reader: Reader,
        readonly writer: Writer,
        readonly singleton: Singleton,
      ) {
        super();
      }
      @Handle('welcome')
      async welcome(job: Job<{ tenant: string }>) {
        const { session } = this.reader;
        session.seen.push(job.data.tenant);
        await held.opened;
        return { own: session.job === job, same: session === this.writer.session, seen: session.seen };
      }
    }
    const { run } = await runnerFor({ providers: [Mails, Reader, Writer, Session, Singleton] });
    const tenants = Array.from({ length: 50 }, (_, i) => `tenant-${i}`);
    const runs = tenants.map((tenant) => run(jobOf({ tenant })));
    held.open();
    expect(await Promise.all(runs)).toEqual(
      tenants.map((tenant) => ({ own: true, same: true, seen: [tenant] })),
    );
    expect([madeOf(Mails), madeOf(Session), madeOf(Singleton)]).toEqual([50, 50, 1]);
  });

  it('runs with its enhancers and its parameter decorators, each with its own job', async () => {
    @Injectable()
    class Only extends Counted {
      constructor(readonly tenant: Tenant) {
        super();
      }
      canActivate() {
        return this.tenant.job.data.tenant !== 'blocked';
      }
    }
    @Injectable()
    class Tag {
      constructor(readonly tenant: Tenant) {}
      intercept(_: unknown, next: CallHandler<string>) {
        return next.handle().pipe(map((said) => `${said}, tagged ${this.tenant.job.data.tenant}`));
      }
    }
    const OfTenant = createParamDecorator((_: unknown, context: ExecutionContext) => {
      return QueueExecutionContext.of<{ tenant: string }>(context).job.data.tenant;
    });
    @UseGuards(Only)
    @Processor('email')
    class Mails {
      constructor(readonly tenant: Tenant) {}
      @UseInterceptors(Tag)
      @Handle('welcome')
      async welcome(job: Job, @OfTenant() tenant: string) {
        return `made for ${this.tenant.job.data.tenant}, told ${tenant}${this.tenant.job === job ? '' : ', of another job'}`;
      }
    }
    const { run } = await runnerFor({ providers: [Mails, Tenant] });
    const names = ['a', 'blocked', 'b'];
    const ends = await Promise.allSettled(names.map((tenant) => run(jobOf({ tenant }))));
    expect(ends).toEqual([
      { status: 'fulfilled', value: 'made for a, told a, tagged a' },
      { status: 'rejected', reason: expect.objectContaining({ message: 'Forbidden resource' }) },
      { status: 'fulfilled', value: 'made for b, told b, tagged b' },
    ]);
    expect(madeOf(Only)).toBe(3);
  });

  it('is found if a factory creates it, or under another token', async () => {
    @Processor('email')
    class Mails {
      constructor(readonly tenant?: Tenant) {}
      @Handle('welcome')
      welcome(job: Job) {
        return this.tenant?.job === job;
      }
    }
    const byFactory = {
      provide: Mails,
      inject: [Tenant],
      useFactory: async (tenant: Tenant) => new Mails(tenant),
    };
    const first = await runnerFor({ providers: [byFactory, Tenant] });
    expect(await first.run(jobOf({}))).toBe(true);
    @Processor('email')
    class Others {
      constructor(readonly tenant: Tenant) {}
      @Handle('welcome')
      welcome(job: Job) {
        return this.tenant.job === job;
      }
    }
    const second = await runnerFor({ providers: [{ provide: 'others', useClass: Others }, Tenant] });
    expect(await second.run(jobOf({}))).toBe(true);
  });

  it('shares its context with providers that are resolved by hand', async () => {
    @Processor('email')
    class Mails {
      constructor(
        readonly tenant: Tenant,
        readonly moduleRef: ModuleRef,
      ) {}
      @Handle('welcome')
      async welcome(job: Job) {
        return (await this.moduleRef.resolve(Tenant, ContextIdFactory.getByRequest(job))) === this.tenant;
      }
    }
    const { run } = await runnerFor({ providers: [Mails, Tenant] });
    expect(await run(jobOf({}))).toBe(true);
  });
});

describe('a processor that cannot be created', () => {
  @Injectable({ scope: Scope.REQUEST })
  class Account {
    constructor(@Inject(JOB_REF) job: Job<{ throws?: unknown }>) {
      if (job.data.throws) throw job.data.throws;
    }
  }
  let calls = 0;
  @Processor('email')
  class Mails {
    constructor(readonly account: Account) {}
    @Handle('welcome')
    welcome() {
      calls += 1;
    }
  }

  it('fails its job with a message that names it, and with the stack of the error', async () => {
    const { run } = await runnerFor({ providers: [Mails, Account] });
    const cause = new RangeError('no such account');
    const job = jobOf({ throws: cause });
    const error = await run(job).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ProcessorScopeError);
    expect(error).toMatchObject({
      code: 'GODWIT_PROCESSOR_SCOPE',
      className: 'Mails',
      queue: 'email',
      jobId: job.id,
      message: `Mails could not be created for job "${job.id}" of queue 'email': no such account`,
      cause,
    });
    expect((error as Error).stack).toContain('scopes.spec.ts');
    expect(calls).toBe(0);
    // The next job gets a new instance.
    await run(jobOf({}));
    expect(calls).toBe(1);
  });

  it('fails with a thrown value that is not an error, and passes UnrecoverableError on unchanged', async () => {
    const { run } = await runnerFor({ providers: [Mails, Account] });
    const job = jobOf({ throws: 'a string' });
    await expect(run(job)).rejects.toThrow(
      `Mails could not be created for job "${job.id}" of queue 'email': "a string" (string)`,
    );
    const final = new UnrecoverableError('the account is closed');
    await expect(run(jobOf({ throws: final }))).rejects.toBe(final);
  });

  it('is not called if its run was aborted meanwhile', async () => {
    const held = gate();
    const connection = { provide: 'connection', scope: Scope.REQUEST, useFactory: () => held.opened };
    let handled = false;
    @Processor('email')
    class Slow {
      constructor(@Inject('connection') readonly connection: unknown) {}
      @Handle('welcome')
      welcome() {
        handled = true;
      }
    }
    const { run } = await runnerFor({ providers: [Slow, connection] });
    const job = jobOf({});
    const running = run(job);
    const aborted = new JobAbortedError('cancelled', job.id, 1, 'no longer wanted');
    Object.assign(job, { aborted });
    held.open();
    await expect(running).rejects.toBe(aborted);
    expect(handled).toBe(false);
  });
});
