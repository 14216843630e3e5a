import {
  createParamDecorator,
  Injectable,
  Module,
  ParseIntPipe,
  StandardSchemaValidationPipe,
  UsePipes,
  ValidationPipe,
  type ArgumentMetadata,
  type ExecutionContext,
  type PipeTransform,
} from '@nestjs/common';
import { IsEmail, IsInt } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Attempt, JobData, JobId, JobRef, Signal } from '#lib/decorators/job-params.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { QueueExecutionContext } from '#lib/handlers/queue-context.js';
import type { Job } from '#lib/job/job.js';
import { NEST_MAJOR } from '../support/nest.js';
import { bootQueue, type QueueApp, outcomeOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();
const ONCE = { defaults: { retention: '1m', attempts: 1 } } as const;

class WelcomeDto {
  @IsEmail()
  readonly to!: string;
  @IsInt()
  readonly times!: number;
}

const Tenant = createParamDecorator((field: string, context: ExecutionContext) => {
  const { job } = QueueExecutionContext.of<Record<string, unknown>>(context);
  return `${field} ${String(job.data[field])}`;
});

/** The result of the job of that name, or its error. */
async function resultOf(app: QueueApp, name: string, data: unknown): Promise<unknown> {
  const [type, result, message] = await outcomeOf(app, name, data);
  return type === 'dead' ? [result, message].join(': ') : result;
}

it('get the data, a property of it, the job, its id, its attempt, its signal, and the value of a custom decorator', async () => {
  @Processor('work')
  class Work {
    @Handle('all')
    all(
      @Signal() signal: AbortSignal,
      @JobData() data: unknown,
      @JobData('to') to: string,
      @JobData('missing') missing: unknown,
      @JobRef() job: Job,
      @JobId() id: string,
      @Attempt() attempt: number,
      @Tenant('tenant') tenant: string,
    ) {
      return [signal.aborted, data, to, missing === undefined, job.id === id, attempt, tenant];
    }
  }
  const app = await bootQueue(redis, { queue: ONCE, providers: [Work] });
  const data = { to: 'ada', tenant: 'acme' };
  expect(await resultOf(app, 'all', data)).toEqual([false, data, 'ada', true, true, 1, 'tenant acme']);
  expect(await resultOf(app, 'all', null)).toContain("Cannot read properties of null (reading 'tenant')");
});

it('get the job as the first and the context as the second parameter, if these have no decorator', async () => {
  @Processor('work')
  class Work {
    @Handle('job first')
    jobFirst(job: Job<number>, @Attempt() attempt: number) {
      return [job.data, attempt];
    }
    @Handle('context second')
    contextSecond(@JobData() data: number, context: QueueExecutionContext) {
      return [data, context.handler];
    }
    @Handle('third')
    third(job: Job<number>, context: QueueExecutionContext, @JobId() id: string) {
      return [job.data, context.job === job, id === job.id];
    }
  }
  const app = await bootQueue(redis, { queue: ONCE, providers: [Work] });
  expect(await resultOf(app, 'job first', 5)).toEqual([5, 1]);
  expect(await resultOf(app, 'context second', 5)).toEqual([5, 'Work.contextSecond']);
  expect(await resultOf(app, 'third', 5)).toEqual([5, true, true]);
});

it('are inherited by an override, except those that it decorates again', async () => {
  class Base {
    job(@JobId() id: string, @Attempt() attempt: number): unknown {
      return [id, attempt];
    }
  }
  @Processor('work')
  class Work extends Base {
    @Handle('job')
    override job(@JobData('n') n: string, attempt: number): unknown {
      return [n, attempt];
    }
  }
  const app = await bootQueue(redis, { queue: ONCE, providers: [Work] });
  expect(await resultOf(app, 'job', { n: 9 })).toEqual([9, 1]);
});

describe('pipes', () => {
  it('treat the data like a body: ValidationPipe checks it and creates the class of the parameter', async () => {
    @Processor('work')
    @UsePipes(new ValidationPipe({ transform: true }))
    class Work {
      @Handle('welcome')
      welcome(@JobData() data: WelcomeDto) {
        return [data instanceof WelcomeDto, data.to];
      }
    }
    const app = await bootQueue(redis, { queue: ONCE, providers: [Work] });
    expect(await resultOf(app, 'welcome', { to: 'ada@example.org', times: 1 })).toEqual([
      true,
      'ada@example.org',
    ]);
    expect(await resultOf(app, 'welcome', { to: 'nobody', times: 1 })).toMatch(/^BadRequestException: /);
  });

  it('of a parameter are created by Nest if they are classes, and get its metadata', async () => {
    @Injectable()
    class Prefix {
      readonly text = 'no. ';
    }
    @Injectable()
    class PrefixPipe implements PipeTransform {
      constructor(private readonly prefix: Prefix) {}
      transform(value: unknown, { type, data, metatype }: ArgumentMetadata) {
        return `${this.prefix.text}${String(value)} ${type} ${data} ${metatype?.name}`;
      }
    }
    @Processor('work')
    class Work {
      @Handle('job')
      job(
        @JobData('n', ParseIntPipe) n: number,
        @JobData('n', ParseIntPipe, PrefixPipe) text: string,
        @JobId() id: string,
      ) {
        return [n, text, typeof id];
      }
    }
    const app = await bootQueue(redis, { queue: ONCE, providers: [Work, Prefix] });
    expect(await resultOf(app, 'job', { n: '7' })).toEqual([7, 'no. 7 body n String', 'string']);
    expect(await resultOf(app, 'job', { n: 'x' })).toBe(
      'BadRequestException: Validation failed (numeric string is expected)',
    );
  });

  it.runIf(NEST_MAJOR >= 12)('of Nest 12 check the schema of a parameter', async () => {
    const schema = z.object({ width: z.number().default(100) });

    @Processor('work')
    class Work {
      @Handle('class')
      @UsePipes(new StandardSchemaValidationPipe())
      class(@JobData({ schema }) data: z.infer<typeof schema>) {
        return data.width;
      }
      @Handle('parameter')
      parameter(
        @JobData('width', { schema: schema.shape.width, pipes: [new StandardSchemaValidationPipe()] })
        width: number,
      ) {
        return width;
      }
    }
    const app = await bootQueue(redis, { queue: ONCE, providers: [Work] });
    expect(await resultOf(app, 'class', {})).toBe(100);
    expect(await resultOf(app, 'class', { width: 'wide' })).toMatch(/^BadRequestException: /);
    expect(await resultOf(app, 'parameter', { width: 5 })).toBe(5);
    expect(await resultOf(app, 'parameter', { width: 'wide' })).toMatch(/^BadRequestException: /);
  });
});

it('are those of their own class if another module has a class with the same name', async () => {
  const modules = [
    (() => {
      @Processor('work')
      class Jobs {
        @Handle('decorated')
        process(@JobData() data: unknown, @JobId() id: string) {
          return [data, id];
        }
      }
      @Module({ providers: [Jobs] })
      class First {}
      return First;
    })(),
    (() => {
      @Processor('work')
      class Jobs {
        @Handle('plain')
        process(job: Job) {
          return job.name;
        }
      }
      @Module({ providers: [Jobs] })
      class Second {}
      return Second;
    })(),
  ];
  const app = await bootQueue(redis, { queue: ONCE, imports: modules });
  expect(await resultOf(app, 'decorated', 7)).toEqual([7, expect.any(String)]);
  expect(await resultOf(app, 'plain', 7)).toBe('plain');
});

describe('a wrong use is refused when the class is read, naming the place', () => {
  const data = JobData as (...given: unknown[]) => ParameterDecorator;

  it.each<[string, unknown[]]>([
    ['nothing where a name was meant', [undefined]],
    ['null', [null]],
    ['a number', [5]],
    ['a list', [[]]],
    ['another name', ['to', 'from']],
    ['a class that is no pipe', [Date]],
    ['unknown options', [{ scheme: 1 }]],
    ['options with other pipes', [{ pipes: [1] }]],
  ])('%s', (_, given) => {
    class Work {
      job() {}
    }
    expect(() => data(...given)(Work.prototype, 'job', 0)).toThrow(
      /@JobData\(\) on Work\.job takes the name of a property, pipes, or { schema, pipes }, got /,
    );
  });

  it.each([
    ['the constructor of Work', undefined],
    ['the static Work.job', 'job'],
  ])('a parameter of %s', (place, key) => {
    class Work {
      static job() {}
    }
    expect(() => JobRef()(Work, key, 0)).toThrow(
      `@JobRef() is on a parameter of ${place}; put it on a parameter of a method with @Handle`,
    );
  });
});
