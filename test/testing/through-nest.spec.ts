import {
  ForbiddenException,
  Inject,
  Injectable,
  ParseIntPipe,
  UseFilters,
  UseGuards,
  UseInterceptors,
  Catch,
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { map } from 'rxjs';
import {
  Handle,
  JOB_REF,
  JobData,
  Processor,
  QueueExecutionContext,
  UnrecoverableError,
  type Job,
} from '#lib/index.js';
import { setBench } from './support.js';

@Injectable()
class OnlyAda implements CanActivate {
  canActivate(context: ExecutionContext) {
    return QueueExecutionContext.of<{ to: string }>(context).job.data.to === 'ada';
  }
}

class Shout implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map((value) => `${String(value)}!`));
  }
}

@Catch(ForbiddenException)
class NeverAgain implements ExceptionFilter {
  catch(error: Error, _: ArgumentsHost) {
    throw new UnrecoverableError(`not for them: ${error.message}`);
  }
}

@Processor('work')
@UseGuards(OnlyAda)
@UseFilters(NeverAgain)
class Letters {
  @Handle('letter')
  @UseInterceptors(Shout)
  letter(@JobData('to') to: string, @JobData('copies', ParseIntPipe) copies: number) {
    return `${to} ${copies + 1}`;
  }
}

let made = 0;

@Processor('scoped')
class Scoped {
  private readonly number = (made += 1);
  constructor(@Inject(JOB_REF) private readonly job: Job<{ to: string }>) {}

  @Handle('who')
  who(job: Job) {
    return { number: this.number, same: this.job.id === job.id, to: this.job.data.to };
  }
}

const options = { queues: [{ name: 'scoped' }], providers: [Letters, Scoped] };

describe('a handler that is run by a test', () => {
  it('runs with its guards, pipes, interceptors and filters', async () => {
    const { testing, work, queue } = await setBench(options);
    expect(await testing.run(Letters, 'letter', { to: 'ada', copies: '4' })).toBe('ada 5!');
    await expect(testing.run(Letters, 'letter', { to: 'bob', copies: '4' })).rejects.toThrow('not for them');
    await expect(testing.run(Letters, 'letter', { to: 'ada', copies: 'x' })).rejects.toThrow(
      'numeric string',
    );
    await queue.add('letter', { to: 'ada', copies: 1 });
    await queue.add('letter', { to: 'bob', copies: 1 });
    expect(await work.drain()).toMatchObject([
      { outcome: 'completed', result: 'ada 2!' },
      { outcome: 'dead', reason: 'unrecoverable', error: { message: 'not for them: Forbidden resource' } },
    ]);
  });

  it('is a method of an instance created for its job if its processor is request-scoped', async () => {
    const { testing, queueOf } = await setBench(options);
    await queueOf('scoped').addBulk(['a', 'b'].map((to) => ({ name: 'who', data: { to } })));
    const runs = await testing.drain();
    const results = runs.map(({ result }) => result as { number: number });
    expect(results).toMatchObject([
      { same: true, to: 'a' },
      { same: true, to: 'b' },
    ]);
    expect(results[0]!.number).not.toBe(results[1]!.number);
    expect(await testing.run(Scoped, 'who', { to: 'c' })).toMatchObject({ same: true, to: 'c' });
  });
});
