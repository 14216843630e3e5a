import { Injectable } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { ProcessorExplorer } from '#lib/handlers/discovery/processor.explorer.js';
import { BootstrapError } from '#lib/errors.js';
import { defineJob } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import { compileApp, startApp, withQueues } from './fakes.js';

@Processor('email')
class EmailProcessor {
  readonly handled: unknown[] = [];

  @Handle('welcome')
  welcome(job: Job<string>) {
    this.handled.push(job.data);
    return 'welcomed';
  }
}

/** A strict mock. Every access throws. */
function refuseToBeRead(): never {
  throw new Error('not to be looked at');
}

describe('what is found', () => {
  it('calls the handler on the instance that Nest created, with its dependencies', async () => {
    @Injectable()
    class Mailer {
      readonly sent: string[] = [];
    }
    @Processor('email', { concurrency: 7 })
    class WithMailer {
      constructor(readonly mailer: Mailer) {}
      @Handle('welcome')
      async welcome(job: Job<string>) {
        this.mailer.sent.push(job.data);
        return job.data.length;
      }
    }
    const { app, pool } = await startApp(['email'], { providers: [WithMailer, Mailer] });
    expect(pool('email').concurrency).toBe(7);
    await expect(pool('email').run('welcome', 'ada')).resolves.toBe(3);
    expect(app.get(Mailer).sent).toEqual(['ada']);
  });

  it('puts all processors of a queue into one pool, whose concurrency one of them sets', async () => {
    @Processor('email')
    class Rest {
      @Handle()
      rest(job: Job) {
        return `rest ${job.name}`;
      }
    }
    @Processor('email', { concurrency: 3 })
    class Digest {
      @Handle('daily')
      @Handle('weekly')
      digest(job: Job) {
        return `digest ${job.name}`;
      }
    }
    const { pools, pool } = await startApp(['email', 'sms'], { providers: [EmailProcessor, Rest, Digest] });
    expect([...pools.keys()]).toEqual(['email']);
    expect(pool('email').concurrency).toBe(3);
    expect(await pool('email').run('welcome')).toBe('welcomed');
    expect(await pool('email').run('daily')).toBe('digest daily');
    expect(await pool('email').run('weekly')).toBe('digest weekly');
    expect(await pool('email').run('unheard-of')).toBe('rest unheard-of');
  });

  it('returns undefined for a name without a handler, also for property names of objects', async () => {
    const { pool } = await startApp(['email'], { providers: [EmailProcessor] });
    const names = ['other', 'constructor', '__proto__', 'toString', 'null'];
    expect(names.filter((name) => pool('email').plan.find(name))).toEqual([]);
  });

  it('gives ten slots by default', async () => {
    const { pool } = await startApp(['email'], { providers: [EmailProcessor] });
    expect(pool('email').concurrency).toBe(10);
  });

  it('finds handlers in decorated subclasses of a class that is not a processor', async () => {
    abstract class Base {
      @Handle('ping')
      ping() {
        return this.constructor.name;
      }
    }
    @Processor('email')
    class Email extends Base {}
    @Processor('sms')
    class Sms extends Base {}
    const { pool } = await startApp(['email', 'sms'], { providers: [Email, Sms] });
    expect(await pool('email').run('ping')).toBe('Email');
    expect(await pool('sms').run('ping')).toBe('Sms');
  });

  it('takes processors made by a factory or given as a value, and aliases only once', async () => {
    const { pool } = await startApp(['email'], {
      providers: [
        { provide: 'made', useFactory: async () => new EmailProcessor() },
        { provide: 'alias', useExisting: 'made' },
      ],
    });
    expect(pool('email').plan.handlers.map((entry) => entry.label)).toEqual(['EmailProcessor.welcome']);
  });

  it('ignores providers that cannot be inspected', async () => {
    const strict = new Proxy(
      {},
      {
        get: refuseToBeRead,
        getPrototypeOf: refuseToBeRead,
      },
    );
    const { proxy, revoke } = Proxy.revocable({}, {});
    const fakes = await compileApp(
      withQueues(['email'], {
        providers: [
          EmailProcessor,
          { provide: 'null', useValue: null },
          { provide: 'bare', useValue: Object.create(null) },
          { provide: 'text', useFactory: () => 'text' },
          { provide: 'odd', useValue: { constructor: 'no class' } },
          { provide: 'late', useFactory: () => ({}) },
        ],
      }),
    );
    // Nest reads values while it makes them. The strict ones replace them afterwards.
    const wrappers = [...(fakes.app as any).container.getModules().values()].flatMap((module: any) => [
      ...module.providers.values(),
    ]);
    const late = wrappers.find((wrapper: any) => wrapper.token === 'late');
    const spy = vi.spyOn(late, 'instance', 'get').mockReturnValue(strict);
    const odd = vi.spyOn(
      wrappers.find((wrapper: any) => wrapper.token === 'odd'),
      'instance',
      'get',
    );
    revoke();
    odd.mockReturnValue(proxy);
    const found = fakes.app.get(ProcessorExplorer).explore();
    spy.mockRestore();
    odd.mockRestore();
    expect(found.faults).toEqual([]);
    expect(found.processors.map((one) => one.className)).toEqual(['EmailProcessor']);
  });

  it('accepts a definition in place of the queue and of the name, and keeps it for the worker', async () => {
    const welcome = defineJob<{ to: string }>('email', 'welcome');
    @Processor(welcome)
    class Typed {
      @Handle(welcome)
      welcome(job: Job<{ to: string }>) {
        return job.data.to;
      }
    }
    const { pool } = await startApp(['email'], { providers: [Typed] });
    expect(pool('email').plan.find('welcome')?.definition).toBe(welcome);
    expect(await pool('email').run('welcome', { to: 'ada' })).toBe('ada');
  });

  it('lets a test replace a handler on the instance', async () => {
    const { app, pool } = await startApp(['email'], { providers: [EmailProcessor] });
    app.get(EmailProcessor).welcome = () => 'replaced';
    expect(await pool('email').run('welcome')).toBe('replaced');
  });

  it('warns about a subclass without a decorator, which is not a processor', async () => {
    class Quiet extends EmailProcessor {}
    const { logs, pool } = await startApp(['email'], { providers: [EmailProcessor, Quiet] });
    expect(pool('email').plan.handlers).toHaveLength(1);
    expect(logs).toContainEqual({
      level: 'warn',
      text: 'Quiet extends the processor EmailProcessor but has no @Processor itself, so it handles no jobs',
    });
  });

  it.each([
    ['an object', { welcome: () => 'never called' }],
    ['null', null],
  ])(
    'warns about a processor that a test replaced by %s, because its jobs would wait silently',
    async (_, value) => {
      const { logs } = await startApp(['email'], {
        providers: [{ provide: EmailProcessor, useValue: value }],
      });
      expect(logs).toContainEqual({
        level: 'warn',
        text:
          'the processor EmailProcessor is replaced by an object without @Processor, so its jobs are not handled; ' +
          'override the providers that it injects, or replace it by a class with @Processor and @Handle',
      });
    },
  );

  it('does not warn about a processor that a class with @Processor, an instance or an alias stands for', async () => {
    @Processor('email')
    class Other {
      @Handle('welcome')
      welcome() {
        return 'other';
      }
    }
    @Processor('sms')
    class Sms {
      @Handle('code')
      code() {
        return 'sent';
      }
    }
    const providers = [
      { provide: EmailProcessor, useClass: Other },
      { provide: Sms, useValue: new Sms() },
      { provide: 'alias', useExisting: Sms },
    ];
    const { logs, pool } = await startApp(['email', 'sms'], { providers });
    expect(logs.filter(({ text }) => text.includes('@Processor'))).toEqual([]);
    expect(await pool('email').run('welcome')).toBe('other');
  });
});

function refused(what: string): string {
  const advice = 'put it on an instance method with a plain name';
  return new BootstrapError([`@Handle('x') is on ${what}; ${advice}`]).message;
}

function at(target: object, key: PropertyKey) {
  return Object.getOwnPropertyDescriptor(target, key);
}

describe('where @Handle may be used', () => {
  // Code that does not compile is tried through a decorator of a looser type.
  const handle = Handle('x') as (target: object, key?: unknown, descriptor?: unknown) => void;
  class Target {
    get total() {
      return 1;
    }
    static send() {}
    [Symbol.iterator]() {}
    method() {}
  }

  it.each([
    [
      'a getter',
      () => handle(Target.prototype, 'total', at(Target.prototype, 'total')),
      'Target.total, which is a getter or setter',
    ],
    ['a static method', () => handle(Target, 'send', at(Target, 'send')), 'Target.send, which is static'],
    [
      'a symbol',
      () => handle(Target.prototype, Symbol.iterator, at(Target.prototype, Symbol.iterator)),
      'Target.Symbol(Symbol.iterator), which is named by a symbol',
    ],
    ['a property', () => handle(Target.prototype, 'field'), 'Target.field, which is a property'],
    ['a parameter', () => handle(Target.prototype, 'method', 0), 'Target.method, which is a parameter'],
    ['a class', () => handle(Target), 'Target, which is a class'],
  ])('not on %s', (_what, decorate, sentence) => {
    expect(decorate).toThrow(refused(sentence));
  });

  it('marks a method and does not change it', () => {
    const before = at(Target.prototype, 'method')!;
    handle(Target.prototype, 'method', before);
    expect(at(Target.prototype, 'method')).toEqual(before);
  });
});
