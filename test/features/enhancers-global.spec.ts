import {
  Catch,
  Controller,
  Get,
  Injectable,
  Scope,
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
  type NestInterceptor,
  type PipeTransform,
  type Provider,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { tap } from 'rxjs';
import { expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { JobData } from '#lib/decorators/job-params.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import type { EnhancerKind } from '#lib/options/worker-options.js';
import { isQueueContext } from '#lib/handlers/queue-context.js';
import { bootQueue } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();
const ONCE = { defaults: { retention: '1m', attempts: 1 } } as const;

const asked: string[] = [];

/** Written for requests and for jobs. */
@Injectable()
class GlobalGuard implements CanActivate {
  canActivate(context: ExecutionContext) {
    asked.push(`guards ${context.getType()}`);
    return true;
  }
}
@Injectable()
class GlobalInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(tap({ error: () => asked.push(`interceptors ${context.getType()}`) }));
  }
}
@Injectable()
class GlobalPipe implements PipeTransform {
  transform(value: unknown, { type }: { type: string }) {
    asked.push(`pipes ${type}`);
    return value;
  }
}
@Catch()
class GlobalFilter implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost) {
    asked.push(`filters ${host.getType()}`);
    if (isQueueContext(host)) throw error;
    host.switchToHttp().getResponse().status(418).json('by the filter');
  }
}

const GLOBAL: readonly Provider[] = [
  { provide: APP_GUARD, useClass: GlobalGuard },
  { provide: APP_INTERCEPTOR, useClass: GlobalInterceptor },
  { provide: APP_PIPE, useClass: GlobalPipe },
  { provide: APP_FILTER, useClass: GlobalFilter },
];

@Processor('work')
class Work {
  @Handle('fails')
  fails(@JobData() _data: unknown) {
    throw new Error('no');
  }
  @Handle('plain')
  plain() {
    throw new Error('no');
  }
}

@Controller()
class Requests {
  @Get()
  get() {
    throw new Error('no');
  }
}

/** The calls of the global enhancers while a job of that name ran. */
async function askedAbout(name: string, global?: boolean | readonly EnhancerKind[]): Promise<string[]> {
  const { queue, ended, close } = await bootQueue(redis, {
    queue: ONCE,
    providers: [Work, ...GLOBAL],
    ...(global !== undefined && { root: { enhancers: { global } } }),
  });
  asked.length = 0;
  const { id } = await queue.add(name, 1);
  expect(await ended(id)).toMatchObject({ type: 'dead', error: { message: 'no' } });
  await close();
  return [...asked];
}

it('do not apply to jobs, unless forRoot enables them: all, or those of some kinds', async () => {
  expect(await askedAbout('fails')).toEqual([]);
  expect(await askedAbout('fails', true)).toEqual([
    'guards queue',
    'pipes body',
    'interceptors queue',
    'filters queue',
  ]);
  expect(await askedAbout('fails', ['guards'])).toEqual(['guards queue']);
  expect(await askedAbout('fails', ['pipes', 'filters'])).toEqual(['pipes body', 'filters queue']);
  expect(await askedAbout('plain', true)).toEqual(['guards queue', 'interceptors queue', 'filters queue']);
});

it('still apply to requests', async () => {
  const { queue, ended, app } = await bootQueue(redis, {
    queue: ONCE,
    providers: [Work, ...GLOBAL],
    imports: [{ module: class RequestsModule {}, controllers: [Requests] }],
  });
  await app.listen(0, '127.0.0.1');
  const { id } = await queue.add('fails', 1);
  await ended(id);
  asked.length = 0;
  const answer = await fetch(await app.getUrl());
  expect([answer.status, await answer.json()]).toEqual([418, 'by the filter']);
  expect(asked).toEqual(['guards http', 'interceptors http', 'filters http']);
});

it('that are request-scoped are refused if they are enabled', async () => {
  @Injectable({ scope: Scope.REQUEST })
  class ScopedGuard extends GlobalGuard {}
  const providers = [Work, { provide: APP_GUARD, useClass: ScopedGuard }];
  await expect(
    bootQueue(redis, { providers, root: { enhancers: { global: true } } }).then(() => 'it started'),
  ).rejects.toThrow(
    'forRoot().enhancers.global includes ScopedGuard, which is request-scoped; ' +
      "make it a singleton, put it on the processors instead, or leave 'guards' out",
  );
  await bootQueue(redis, { providers, root: { enhancers: { global: ['pipes'] } } });
});

it.each([['guards'], [['guard']], [['guards', 5]], [1], [{}], [null]])(
  'of an unknown kind, %j, are refused at the start',
  async (global) => {
    const root = { enhancers: { global: global as never } };
    await expect(bootQueue(redis, { root }).then(() => 'it started')).rejects.toThrow(
      /forRoot\(\)\.enhancers\.global must be true, false, or a list out of 'guards', 'interceptors', 'pipes', 'filters', got /,
    );
  },
);
