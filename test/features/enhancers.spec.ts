import {
  Body,
  ForbiddenException,
  Injectable,
  Param,
  SetMetadata,
  UseGuards,
  UseInterceptors,
  UsePipes,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type NestInterceptor,
  type PipeTransform,
  type Provider,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { map, of, tap, throwError } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { JobData } from '#lib/decorators/job-params.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { isQueueContext, QueueExecutionContext } from '#lib/handlers/queue-context.js';
import { defineJob } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import { bootQueue } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();
const KEPT = { defaults: { retention: '1m', attempts: 1 } } as const;

/** The calls of the enhancers of a test, in order. */
const trace: string[] = [];

@Injectable()
class Tenants {
  readonly open = new Set(['acme']);
}

@Injectable()
class TenantGuard implements CanActivate {
  constructor(
    private readonly tenants: Tenants,
    private readonly reflector: Reflector,
  ) {}

  canActivate(context: ExecutionContext) {
    const { job } = QueueExecutionContext.of<{ tenant: string }>(context);
    const roles = this.reflector.getAllAndOverride<string>('role', [
      context.getHandler(),
      context.getClass(),
    ]);
    trace.push(`guard ${roles} ${context.getClass().name}.${context.getHandler().name} ${job.attempt}`);
    return this.tenants.open.has(job.data.tenant);
  }
}

function traced(name: string): NestInterceptor {
  return {
    intercept: (_context: ExecutionContext, next: CallHandler) => {
      trace.push(`${name} before`);
      return next.handle().pipe(tap(() => trace.push(`${name} after`)));
    },
  };
}

function tracedPipe(name: string): PipeTransform {
  return {
    transform: (value: unknown, { type }) => {
      trace.push(`${name} ${type}`);
      return value;
    },
  };
}

describe('a handler', () => {
  it('is called after its guards, inside its interceptors, with the data that its pipes returned', async () => {
    @Processor('work')
    @SetMetadata('role', 'worker')
    @UseInterceptors(traced('class'))
    @UsePipes(tracedPipe('class pipe'))
    class Work {
      @Handle('welcome')
      @UseGuards(TenantGuard)
      @UseInterceptors(traced('method'), {
        intercept: (_context, next) => next.handle().pipe(map((text) => `${text}!`)),
      })
      @UsePipes(tracedPipe('method pipe'))
      welcome(
        @JobData('to', { transform: (to: string) => to.toUpperCase() }) to: string,
        @JobData() data: { tenant: string },
      ) {
        trace.push(`called ${this.constructor.name}`);
        return `${to} of ${data.tenant}`;
      }
    }
    trace.length = 0;
    const { queue, ended } = await bootQueue(redis, { queue: KEPT, providers: [Work, Tenants] });
    const { id } = await queue.add('welcome', { to: 'ada', tenant: 'acme' });
    expect(await ended(id)).toMatchObject({ type: 'completed' });
    expect((await queue.get(id))!.result).toBe('ADA of acme!');
    const pipes = ['class pipe body', 'class pipe body', 'method pipe body', 'method pipe body'];
    expect(trace.filter((step) => step.includes('pipe')).toSorted()).toEqual(pipes);
    expect(trace.filter((step) => !step.includes('pipe'))).toEqual([
      'guard worker Work.welcome 1',
      'class before',
      'method before',
      'called Work',
      'method after',
      'class after',
    ]);
  });

  it('that a guard refuses fails with ForbiddenException, and is retried as after any error', async () => {
    const called = vi.fn<() => string>(() => 'done');
    const answers = [false, Promise.resolve(false), of(false), throwError(() => new Error('who?')), of(true)];
    const guard: CanActivate = { canActivate: () => answers.shift()! };

    @Processor('work')
    class Work {
      @Handle('guarded')
      @UseGuards(guard)
      guarded() {
        return called();
      }
    }
    const { queue, said, ended } = await bootQueue(redis, {
      queue: { defaults: { attempts: 5, backoff: { type: 'fixed', delay: 1 } } },
      providers: [Work],
    });
    const { id } = await queue.add('guarded', null);
    expect(await ended(id)).toMatchObject({ type: 'completed', attempt: 5 });
    expect(called).toHaveBeenCalledOnce();
    const failures = said.values.flatMap((event) =>
      event.type === 'retrying' ? [event.error?.message] : [],
    );
    const forbidden = new ForbiddenException('Forbidden resource').message;
    expect(failures).toEqual([forbidden, forbidden, forbidden, 'who?']);
  });

  it('keeps name and message of an HttpException in the failure', async () => {
    @Processor('work')
    class Work {
      @Handle('guarded')
      @UseGuards({ canActivate: () => false })
      guarded() {}
    }
    const { queue, ended } = await bootQueue(redis, { queue: KEPT, providers: [Work] });
    const { id } = await queue.add('guarded', null);
    await ended(id);
    const { failure } = (await queue.get(id))!;
    expect(failure).toMatchObject({ name: 'ForbiddenException', message: 'Forbidden resource' });
  });

  it('of a definition is validated before its guards see the job', async () => {
    const resize = defineJob('work', 'resize', z.object({ width: z.coerce.number().default(100) }));
    const seen: unknown[] = [];

    @Processor(resize)
    @UseGuards({
      canActivate: (context) => {
        seen.push(QueueExecutionContext.of(context).job.data);
        return true;
      },
    })
    class Work {
      @Handle(resize)
      resize(@JobData() { width }: { width: number }) {
        return width + 1;
      }
    }
    const { producer, queue, ended } = await bootQueue(redis, { queue: KEPT, providers: [Work] });
    const good = await producer.add(resize, {});
    expect(await ended(good.id)).toMatchObject({ type: 'completed' });
    expect((await queue.get(good.id))!.result).toBe(101);
    const bad = await queue.add('resize', { width: 'wide' });
    expect(await ended(bad.id)).toMatchObject({ type: 'dead', reason: 'unrecoverable' });
    expect(seen).toEqual([{ width: 100 }]);
  });

  it('may be replaced on its instance by a test, and keeps its guards', async () => {
    let open = true;

    @Processor('work')
    @UseGuards({ canActivate: () => open })
    class Work {
      @Handle('job')
      job(@JobData('n') n: number) {
        return n;
      }
    }
    const { queue, ended, get } = await bootQueue(redis, { queue: KEPT, providers: [Work] });
    const spy = vi.spyOn(get(Work), 'job').mockImplementation((n) => n * 10);
    const first = await queue.add('job', { n: 7 });
    expect(await ended(first.id)).toMatchObject({ type: 'completed' });
    expect((await queue.get(first.id))!.result).toBe(70);
    expect(spy).toHaveBeenCalledExactlyOnceWith(7, expect.anything());
    open = false;
    const second = await queue.add('job', { n: 8 });
    expect(await ended(second.id)).toMatchObject({ type: 'dead' });
    spy.mockRestore();
    open = true;
    const third = await queue.add('job', { n: 9 });
    expect(await ended(third.id)).toMatchObject({ type: 'completed' });
    expect((await queue.get(third.id))!.result).toBe(9);
  });

  it('that inherits its method has the enhancers of the base class', async () => {
    class Base {
      @Handle('job')
      @UseGuards({ canActivate: () => false })
      job() {}
    }
    @Processor('work')
    class Work extends Base {}
    const { queue, ended } = await bootQueue(redis, { queue: KEPT, providers: [Work] });
    const { id } = await queue.add('job', null);
    expect(await ended(id)).toMatchObject({ type: 'dead', error: { message: 'Forbidden resource' } });
  });
});

describe('the context of a job', () => {
  it('has its own type, and contains the job, its queue, attempt, signal and handler', async () => {
    let seen: Record<string, unknown> = {};

    @Processor('work')
    class Work {
      @Handle('job')
      @UseGuards({
        canActivate: (context) => {
          const of = QueueExecutionContext.of<number>(context);
          const { job, queue, attempt, signal, handler } = of;
          const isSame = context.getArgs<unknown[]>()[0] === job && job.data === 5;
          const method = context.getHandler() === Work.prototype.job;
          const type = [context.getType(), isQueueContext(context), context.getClass() === Work, method];
          seen = { type, isSame, queue, attempt, aborted: signal.aborted, handler };
          return true;
        },
      })
      job(job: Job, context: QueueExecutionContext) {
        return [context instanceof QueueExecutionContext, context.job === job, context.handler];
      }
      @Handle('plain')
      plain(job: Job, context: QueueExecutionContext) {
        return [context instanceof QueueExecutionContext, context.job === job, context.handler];
      }
    }
    const { queue, ended } = await bootQueue(redis, { queue: KEPT, providers: [Work] });
    const { id } = await queue.add('job', 5);
    expect(await ended(id)).toMatchObject({ type: 'completed' });
    expect((await queue.get(id))!.result).toEqual([true, true, 'Work.job']);
    expect(seen).toEqual({
      type: ['queue', true, true, true],
      isSame: true,
      queue: 'work',
      attempt: 1,
      aborted: false,
      handler: 'Work.job',
    });
    const plain = await queue.add('plain', 5);
    expect(await ended(plain.id)).toMatchObject({ type: 'completed' });
    expect((await queue.get(plain.id))!.result).toEqual([true, true, 'Work.plain']);
  });

  it('cannot be taken from a request, and the error explains why', () => {
    const request = { getType: () => 'http' } as unknown as ExecutionContext;
    expect(isQueueContext(request)).toBe(false);
    expect(() => QueueExecutionContext.of(request)).toThrow(
      /^QueueExecutionContext.of\(\) must be the context of a job, whose getType\(\) is 'queue'; ask isQueueContext\(context\) first, got /,
    );
  });
});

/** Why an application with these providers does not start. */
async function refusal(providers: Provider[]): Promise<string> {
  const error: unknown = await bootQueue(redis, { providers }).then(
    () => new Error('it started'),
    (thrown: unknown) => thrown,
  );
  return (error as Error).message;
}

describe('is refused at the start, naming the place', () => {
  @Injectable()
  class Guard implements CanActivate {
    canActivate() {
      return false;
    }
  }

  it.each([
    ['a factory', (Work: new () => object) => ({ provide: 'work', useFactory: () => new Work() })],
    ['a value', (Work: new () => object) => ({ provide: 'work', useValue: new Work() })],
  ])('a guard that Nest has not created, because the processor comes from %s', async (_, provide) => {
    @Processor('work')
    @UseInterceptors(traced('instances are fine'))
    class Work {
      @Handle('job')
      @UseGuards(Guard)
      job() {}
    }
    expect(await refusal([provide(Work)])).toContain(
      'Work.job has @UseGuards(Guard), which Nest would ignore, because it creates enhancers only for classes that are ' +
        'listed as providers; list Work in "providers", or give an instance instead of the class',
    );
  });

  it('a parameter that belongs to a request', async () => {
    @Processor('work')
    class Work {
      @Handle('job')
      job(@Param('id') _id: string) {}
    }
    expect(await refusal([Work])).toContain(
      'parameter 1 of Work.job has a decorator for requests; take @JobData(), @JobRef(), @JobId(), @Attempt() or @Signal()',
    );
  });

  it('but not @Body, which pipes cannot distinguish from the data of a job', async () => {
    @Processor('work')
    class Work {
      @Handle('job')
      job(@Body('n') n: number) {
        return n + 1;
      }
    }
    const { queue, ended } = await bootQueue(redis, { queue: KEPT, providers: [Work] });
    const { id } = await queue.add('job', { n: 1 });
    expect(await ended(id)).toMatchObject({ type: 'completed' });
    expect((await queue.get(id))!.result).toBe(2);
  });
});
