import { Controller, Injectable, Module, Scope, type ModuleMetadata } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { HandleBatch } from '#lib/decorators/handle-batch.decorator.js';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { BootstrapError } from '#lib/errors.js';
import { defineJob } from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import { processorOf } from '../support/queue-app.js';
import { bootFaults, compileApp, withQueues } from './fakes.js';

/** The faults for which an application with the queues `email` and `sms` does not start. */
const faultsOf = (metadata: ModuleMetadata, queues = ['email', 'sms']) =>
  bootFaults(withQueues(queues, metadata));

@Processor('email')
class EmailProcessor {
  @Handle('welcome')
  welcome(): string {
    return 'welcomed';
  }
}

describe('the bootstrap refuses', () => {
  it('two handlers for one job name, in one class or in several', async () => {
    @Processor('email')
    class Other {
      @Handle('welcome')
      greet() {}
      @Handle('bye')
      bye() {}
      @Handle('bye')
      leave() {}
    }
    @Processor('sms')
    class Sms {
      @Handle('welcome')
      welcome() {}
    }
    expect(await faultsOf({ providers: [EmailProcessor, Other, Sms] })).toEqual([
      "job 'welcome' of queue 'email' has 2 handlers: EmailProcessor.welcome and Other.greet; keep one",
      "job 'bye' of queue 'email' has 2 handlers: Other.bye and Other.leave; keep one",
    ]);
  });

  it('generators, whose body would never run', async () => {
    @Processor('email')
    class Generators {
      @Handle('a')
      *a() {}
      @Handle('b')
      async *b() {}
      @HandleBatch('c', { size: 2 })
      async *c() {}
    }
    @Processor('sms', { scope: Scope.REQUEST })
    class Scoped {
      @Handle('d')
      *d() {}
    }
    const fault =
      'is a generator, so a call would return before its body runs; make it an async method, or return an Observable';
    expect(await faultsOf({ providers: [Generators, Scoped] })).toEqual([
      `Generators.a ${fault}`,
      `Generators.b ${fault}`,
      `Generators.c ${fault}`,
      `Scoped.d ${fault}`,
    ]);
  });

  it('two catch-alls for one queue', async () => {
    @Processor('email')
    class A {
      @Handle()
      rest() {}
    }
    @Processor('email')
    class B {
      @Handle()
      others() {}
    }
    expect(await faultsOf({ providers: [A, B] })).toEqual([
      "queue 'email' has 2 handlers for every other job: A.rest and B.others; keep one @Handle() without a name",
    ]);
  });

  it('a processor without handlers', async () => {
    @Processor('email')
    class Empty {
      welcome() {}
    }
    expect(await faultsOf({ providers: [Empty] })).toEqual([
      "Empty is a processor of queue 'email' and has no handler; put @Handle('name') on one of its methods",
    ]);
  });

  it('a processor of a queue that is not registered', async () => {
    @Processor('emial')
    class Misspelt {
      @Handle('welcome')
      welcome() {}
    }
    expect(await faultsOf({ providers: [Misspelt] })).toEqual([
      "@Processor of Misspelt: queue 'emial' is not registered; " +
        "add QueueModule.registerQueue({ name: 'emial' }) to a module (registered: email, sms)",
    ]);
    expect(await faultsOf({ providers: [Misspelt] }, [])).toEqual([
      "@Processor of Misspelt: queue 'emial' is not registered; " +
        "add QueueModule.registerQueue({ name: 'emial' }) to a module (no queue is registered)",
    ]);
  });

  it('queues without a name, named twice or with an invalid weight', async () => {
    const queues: unknown[] = [
      [],
      {},
      null,
      new Map([['email', 1]]),
      ['email', 'sms', 'email'],
      ['email', 7],
      { email: 0, sms: 1.5 },
      { email: 1001, sms: '3' },
      ['email', 'nowhere'],
    ];
    const providers = queues.map((given, i) => {
      const Named = processorOf(given as never, { '*': () => undefined });
      Object.defineProperty(Named, 'name', { value: `P${i}` });
      return Named;
    });
    const hint =
      'pass a name, a list of names in strict order, or names with weights: { critical: 6, default: 3 }';
    const name = 'a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -';
    const weight = (i: number, queue: string, got: string) =>
      `@Processor of P${i}: the weight of queue '${queue}' must be an integer from 1 to 1000, got ${got}`;
    expect(await faultsOf({ providers })).toEqual([
      `@Processor of P0 names no queue, got [] (array); ${hint}`,
      `@Processor of P1 names no queue, got {} (object); ${hint}`,
      `@Processor of P2: ${name}, got null (null)`,
      expect.stringMatching(/^@Processor of P3 names no queue, got .*; pass a name/),
      "@Processor of P4: queue 'email' is in the list twice; name it once",
      `@Processor of P5: ${name}, got 7 (number)`,
      weight(6, 'email', '0 (number)'),
      weight(6, 'sms', '1.5 (number)'),
      weight(7, 'email', '1001 (number)'),
      weight(7, 'sms', '"3" (string)'),
      "@Processor of P8: queue 'nowhere' is not registered; " +
        "add QueueModule.registerQueue({ name: 'nowhere' }) to a module (registered: email, sms)",
    ]);
  });

  it('a queue in two pools, named in another order, with other weights or alone', async () => {
    @Processor(['email', 'sms'])
    class Ordered {
      @Handle()
      any() {}
    }
    @Processor({ email: 6, sms: 3 })
    class Weighted {
      @Handle()
      any() {}
    }
    @Processor('sms')
    class Alone {
      @Handle()
      any() {}
    }
    const advice = 'give them the same queues, or name the queue in one of them';
    expect(await faultsOf({ providers: [Ordered, Weighted, Alone] })).toEqual([
      "queue 'email' can belong to only one pool, but is in several: " +
        `Ordered ('email' before 'sms') and Weighted ('email' 6 : 'sms' 3); ${advice}`,
      "queue 'sms' can belong to only one pool, but is in several: " +
        `Ordered ('email' before 'sms'), Weighted ('email' 6 : 'sms' 3) and Alone ('sms'); ${advice}`,
    ]);
  });

  it('a queue of several that nothing handles, and a definition for none of them', async () => {
    const ping = defineJob<null>('sms', 'ping');
    const fax = defineJob<null>('fax', 'send');
    @Processor(['email', 'sms'])
    class Half {
      @Handle(ping)
      ping(_job: Job<null>) {}
      @Handle(fax)
      fax(_job: Job<null>) {}
    }
    expect(await faultsOf({ providers: [Half] })).toEqual([
      "Half.fax handles 'send', which is defined for queue 'fax', but Half works on queues 'email' and 'sms'; " +
        "move it to a processor of 'fax'",
      "nothing handles the jobs of queue 'email', which Half works on; put @Handle('name') on a method, or remove the queue from @Processor",
    ]);
  });

  it('invalid names', async () => {
    const NAMES: Record<string, string> = {};
    @Processor('e mail')
    class Spaced {
      @Handle('welcome')
      welcome() {}
    }
    @Processor('email')
    class Nameless {
      @Handle(NAMES['welcom']!)
      misspelt() {}
      @Handle('')
      empty() {}
      @Handle(7 as never)
      seven() {}
    }
    const text = 'a job name is 1 to 255 bytes of well-formed text without control characters';
    expect(await faultsOf({ providers: [Spaced, Nameless] })).toEqual([
      '@Processor of Spaced: a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, got "e mail" (string)',
      `@Handle(undefined) on Nameless.misspelt: ${text}: undefined is not a string`,
      `@Handle('') on Nameless.empty: ${text}: "" (string) is empty`,
      `@Handle(7 (number)) on Nameless.seven: ${text}: 7 (number) is not a string`,
    ]);
  });

  it('bad options, with what was received', async () => {
    @Processor('email', { concurrency: 0 })
    class None {
      @Handle('a')
      a() {}
    }
    @Processor('sms', { concurrency: '50' as never, speed: 'high' } as never)
    class Text {
      @Handle('b')
      b() {}
    }
    expect(await faultsOf({ providers: [None, Text] })).toEqual([
      "@Processor('email') of None.concurrency must be an integer from 1 to 10000, got 0 (number)",
      '@Processor(\'sms\') of Text.concurrency must be an integer from 1 to 10000, got "50" (string)',
      "@Processor('sms') of Text.speed is not an option; the options are concurrency, inject, scope, durable",
    ]);
  });

  it('options of a processor that are not an object, or cannot be read', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const given: unknown[] = [null, 50, [Scope.REQUEST], proxy];
    const providers = given.map((options, i) => {
      const Named = processorOf('email', { [`job ${i}`]: () => undefined }, options as never);
      Object.defineProperty(Named, 'name', { value: `P${i}` });
      return Named;
    });
    expect(await faultsOf({ providers })).toEqual([
      "@Processor('email') of P0 must be an object, got null (null)",
      "@Processor('email') of P1 must be an object, got 50 (number)",
      "@Processor('email') of P2 must be an object, got [2] (array)",
      expect.stringMatching(
        /^@Processor\('email'\) of P3 must be something that can be read, got .* \(object\)$/,
      ),
    ]);
  });

  it('an invalid scope, and durable without the scope that it needs', async () => {
    @Processor('email', { scope: 'request' as never })
    class Word {
      @Handle('a')
      a() {}
    }
    @Processor('email', { durable: true })
    class Unscoped {
      @Handle('b')
      b() {}
    }
    @Processor('email', { scope: Scope.REQUEST, durable: 'yes' as never })
    class Yes {
      @Handle('c')
      c() {}
    }
    expect(await faultsOf({ providers: [Word, Unscoped, Yes] })).toEqual([
      '@Processor(\'email\') of Word.scope must be Scope.DEFAULT, Scope.REQUEST or Scope.TRANSIENT, got "request" (string)',
      "@Processor('email') of Unscoped.durable must be left out or given together with scope: Scope.REQUEST, got true (boolean)",
      '@Processor(\'email\') of Yes.durable must be true or false, got "yes" (string)',
    ]);
  });

  it('two processors of one queue that ask for different concurrency', async () => {
    @Processor('email', { concurrency: 5 })
    class A {
      @Handle('a')
      a() {}
    }
    @Processor('email')
    class B {
      @Handle('b')
      b() {}
    }
    @Processor('email', { concurrency: 50 })
    class C {
      @Handle('c')
      c() {}
    }
    expect(await faultsOf({ providers: [A, B, C] })).toEqual([
      "the processors of queue 'email' share one pool, but have different values for concurrency: A 5 and C 50; set it in one of them",
    ]);
  });

  it('a handler in a class that is not a processor, provider or controller', async () => {
    @Injectable()
    class MailService {
      @Handle('welcome')
      send() {}
    }
    @Controller()
    class MailController {
      @Handle()
      any() {}
    }
    expect(await faultsOf({ providers: [MailService], controllers: [MailController] })).toEqual([
      "MailService.send has @Handle('welcome'), but MailService has no @Processor; add @Processor('queue') to the class",
      "MailController.any has @Handle(), but MailController has no @Processor; add @Processor('queue') to the class",
    ]);
  });

  it('a controller that is a processor', async () => {
    @Controller()
    @Processor('email')
    class EmailController {
      @Handle('welcome')
      welcome() {}
    }
    expect(await faultsOf({ controllers: [EmailController] })).toEqual([
      'EmailController is a controller with @Processor; make it a provider, because controllers only answer requests',
    ]);
  });

  it('a handler whose definition names another queue', async () => {
    const ping = defineJob<null>('sms', 'ping');
    @Processor('email')
    class Lost {
      @Handle(ping)
      ping(_job: Job<null>) {}
    }
    expect(await faultsOf({ providers: [Lost] })).toEqual([
      "Lost.ping handles 'ping', which is defined for queue 'sms', but Lost works on queue 'email'; " +
        "move it to a processor of 'sms'",
    ]);
  });

  it('an override without @Handle that hides a handler', async () => {
    @Processor('sms')
    class Loud extends EmailProcessor {
      override welcome() {
        return 'LOUD';
      }
    }
    expect(await faultsOf({ providers: [Loud] })).toEqual([
      "Loud.welcome overrides EmailProcessor.welcome, which has @Handle('welcome'), and so hides it; " +
        'decorate the override too, or give it another name',
      "Loud is a processor of queue 'sms' and has no handler; put @Handle('name') on one of its methods",
    ]);
  });

  it('a class provided twice', async () => {
    @Module({ providers: [EmailProcessor] })
    class MailModule {}
    @Module({ providers: [EmailProcessor, { provide: 'again', useClass: EmailProcessor }] })
    class NewsModule {}
    expect(await faultsOf({ imports: [MailModule, NewsModule] })).toEqual([
      'the processor EmailProcessor is provided 3 times (MailModule, NewsModule and NewsModule), ' +
        'so it has an instance in each; provide it in one module and export it from there',
    ]);
  });

  it('a transient processor', async () => {
    @Processor('email', { scope: Scope.TRANSIENT })
    class Transient {
      @Handle('d')
      d() {}
    }
    expect(await faultsOf({ providers: [Transient] })).toEqual([
      'Transient is transient; a processor has one instance for all its jobs, or with Scope.REQUEST one for each job: change its scope',
    ]);
  });

  it('everything at once, in one error', async () => {
    @Processor('emial', { concurrency: 5 })
    class Misspelt {
      @Handle('welcome')
      welcome() {}
    }
    @Processor('sms')
    class Empty {}
    const { init } = await compileApp(withQueues(['email', 'sms'], { providers: [Misspelt, Empty] }));
    await expect(init()).rejects.toThrow(
      new BootstrapError([
        "@Processor of Misspelt: queue 'emial' is not registered; " +
          "add QueueModule.registerQueue({ name: 'emial' }) to a module (registered: email, sms)",
        "Empty is a processor of queue 'sms' and has no handler; put @Handle('name') on one of its methods",
      ]).message,
    );
  });
});
