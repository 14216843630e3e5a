import { createRequire } from 'node:module';
import {
  Inject,
  Injectable,
  Module,
  Scope,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { QueueEvents } from '#lib/events/queue-events.js';
import type { Job } from '#lib/job/job.js';
import { QueueProducer } from '#lib/producer/queue-producer.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { FakePool, compileApp, gate, startApp, withQueues, type History } from './fakes.js';

const require = createRequire(import.meta.url);
const NEST_11 = (require('@nestjs/core/package.json') as { version: string }).version.startsWith('11.');

const HISTORY = Symbol('history');
const GATE = Symbol('gate');
const WHOLE_LIFE = [
  'engine opened',
  'sms started',
  'sms draining',
  'sms drained',
  'services stopped',
  'engine closed',
];

/** A connection that is open between the first and the last hook, as that of an ORM. */
@Injectable()
class Database implements OnModuleInit, OnModuleDestroy {
  isOpen = false;
  constructor(@Inject(HISTORY) readonly history: History) {}
  async onModuleInit() {
    this.isOpen = true;
    this.history.push('database opened');
  }
  async onModuleDestroy() {
    this.isOpen = false;
    this.history.push('database closed');
  }
}

/** Its job checks at the end whether the database is still there. */
@Processor('email')
class EmailProcessor implements OnModuleDestroy {
  constructor(
    readonly database: Database,
    @Inject(GATE) readonly held: { opened: Promise<void> },
    @Inject(HISTORY) readonly history: History,
  ) {}
  @Handle()
  async slow(job: Job) {
    await this.held.opened;
    this.history.push(`${job.name} ended, database ${this.database.isOpen ? 'open' : 'closed'}`);
  }
  onModuleDestroy() {
    this.history.push('own hook of EmailProcessor');
  }
}

@Processor('sms')
class SmsProcessor {
  @Handle()
  quick() {}
}

/** Keeps the database where the first parameter says. */
function application(where: 'same module' | 'imported module' | 'global module') {
  const history: History = [];
  const held = gate();
  @Module({
    providers: [
      { provide: HISTORY, useValue: history },
      { provide: GATE, useValue: held },
    ],
    exports: [HISTORY, GATE],
  })
  class Tools {}
  @Module({ imports: [Tools], providers: [Database], exports: [Database] })
  class DatabaseModule {}
  @Module({
    imports: where === 'imported module' ? [Tools, DatabaseModule] : [Tools],
    providers: [EmailProcessor, SmsProcessor, ...(where === 'same module' ? [Database] : [])],
  })
  class MailModule {}
  const imports =
    where === 'global module' ? [{ module: DatabaseModule, global: true }, MailModule] : [MailModule];
  return { history, held, metadata: { imports } };
}

describe('start', () => {
  it('comes after every provider is initialised', async () => {
    const { history, held, metadata } = application('imported module');
    const { app, engine } = await startApp(['email', 'sms'], metadata, { history });
    expect(history).toEqual(['engine opened', 'database opened', 'email started', 'sms started']);
    expect(engine.state).toBe('open');
    expect(app.get(QueueRuntime).state).toBe('running');
    held.open();
  });
});

describe('shutdown', () => {
  // Nest 11 destroys all providers of one module at once, so the database itself must wait there.
  it.each(['imported module', 'global module', 'same module'] as const)(
    'drains before a database in the %s is closed, and runs the hook of the processor after the drain',
    async (where) => {
      const { history, held, metadata } = application(where);
      const { app, pool, engine, pools } = await startApp(['email', 'sms'], metadata, { history });
      const drains = [...pools.keys()].map((queue) => `${queue} draining`);
      void pool('email').run('job');
      const closing = app.close();
      await pool('email').draining;
      expect(app.get(QueueRuntime).state).toBe('draining');
      held.open();
      await closing;
      expect(history.slice(4)).toEqual([
        ...drains,
        'sms drained',
        'job ended, database open',
        'email drained',
        'services stopped',
        'own hook of EmailProcessor',
        'database closed',
        'engine closed',
      ]);
      expect([app.get(QueueRuntime).state, engine.state]).toEqual(['stopped', 'closed']);
    },
  );

  it.each([
    ['a singleton', Scope.DEFAULT],
    ['request-scoped', Scope.REQUEST],
  ])('does not stop another application that has the same value as a provider: %s', async (_, scope) => {
    const down: string[] = [];
    const db = { onModuleDestroy: () => void down.push('database closed') };
    const start = async () => {
      const held = gate();
      @Processor('email', { scope })
      class Slow {
        @Handle()
        async slow() {
          await held.opened;
          down.push('job ended');
        }
      }
      @Module({ providers: [{ provide: 'DB', useValue: db }, Slow] })
      class MailModule {}
      return { ...(await startApp(['email'], { imports: [MailModule] })), held };
    };
    const a = await start();
    const hook = db.onModuleDestroy;
    const b = await start();
    expect(db.onModuleDestroy).toBe(hook);
    for (const { app, pool, held } of [a, b]) {
      void pool('email').run('job');
      const closing = app.close();
      await pool('email').draining;
      expect(b.app.get(QueueRuntime).state).toBe(app === a.app ? 'running' : 'draining');
      held.open();
      await closing;
    }
    expect(down).toEqual(['job ended', 'database closed', 'job ended', 'database closed']);
  });

  it('starts one drain of all pools with the first module that is destroyed', async () => {
    const order: string[] = [];
    const held = gate();
    @Processor('email')
    class Slow {
      @Handle()
      async slow() {
        await held.opened;
      }
    }
    @Module({ providers: [Slow] })
    class SlowModule implements OnModuleDestroy {
      onModuleDestroy() {
        order.push('SlowModule down');
      }
    }
    @Module({ providers: [SmsProcessor] })
    class QuickModule implements OnModuleDestroy {
      onModuleDestroy() {
        order.push('QuickModule down');
      }
    }
    const { app, pool } = await startApp(
      ['email', 'sms'],
      { imports: [SlowModule, QuickModule] },
      { history: order },
    );
    void pool('email').run('job');
    const closing = app.close();
    await pool('sms').drained;
    expect(order, 'nothing goes down while one pool drains').not.toContain('QuickModule down');
    held.open();
    await closing;
    expect(order.filter((entry) => entry.includes('draining'))).toHaveLength(2);
  });

  it('lets handlers add jobs during the drain, and other code until the end', async () => {
    const held = gate();
    @Processor('email')
    class Chain {
      constructor(readonly producer: QueueProducer) {}
      @Handle()
      async first() {
        await held.opened;
        await this.producer.add('sms', 'follow-up', null);
      }
    }
    @Injectable()
    class Farewell implements OnApplicationShutdown {
      private left = false;
      constructor(readonly producer: QueueProducer) {}
      async onApplicationShutdown() {
        if (this.left) return;
        this.left = true;
        await this.producer.add('email', 'farewell', null);
      }
    }
    @Module({ providers: [Farewell] })
    class Deepest {}
    @Module({ imports: [Deepest] })
    class Deeper {}
    const { app, pool, history } = await startApp(['email', 'sms'], {
      providers: [Chain],
      imports: [Deeper],
    });
    const run = pool('email').run('job');
    const closing = app.close();
    await pool('email').draining;
    held.open();
    await expect(run).resolves.toBeUndefined();
    await closing;
    expect(history.slice(-6)).toEqual([
      'email draining',
      'added to sms',
      'email drained',
      'services stopped',
      'added to email',
      'engine closed',
    ]);
  });

  it('completes event streams after the drain and before the HTTP server waits for them', async () => {
    const history: History = [];
    @Injectable()
    class Watcher implements OnModuleInit {
      constructor(readonly events: QueueEvents) {}
      onModuleInit() {
        this.events.status$.subscribe({ complete: () => history.push('streams completed') });
      }
    }
    const { app } = await startApp(['sms'], { providers: [SmsProcessor, Watcher] }, { history });
    const dispose = vi
      .spyOn(app as unknown as { dispose(): Promise<void> }, 'dispose')
      .mockImplementation(async () => void history.push('HTTP server closed'));
    await app.close();
    expect(dispose).toHaveBeenCalledOnce();
    expect(history.slice(-4)).toEqual([
      'services stopped',
      'streams completed',
      'HTTP server closed',
      'engine closed',
    ]);
  });

  it('may be called twice, one after the other or at once', async () => {
    const { app, history } = await startApp(['sms'], { providers: [SmsProcessor] });
    await Promise.all([app.close(), app.close()]);
    await app.close();
    expect(history).toEqual(WHOLE_LIFE);
  });

  it.skipIf(NEST_11)('is complete also if the start has failed', async () => {
    @Injectable()
    class Broken implements OnApplicationBootstrap {
      onApplicationBootstrap() {
        throw new Error('no licence');
      }
    }
    const { app, init, engine, history } = await compileApp(
      withQueues(['sms'], { providers: [SmsProcessor, Broken] }),
    );
    await expect(init()).rejects.toThrow('no licence');
    await app.close();
    expect(history).toEqual(WHOLE_LIFE);
    expect(engine.state).toBe('closed');
  });

  it('continues when a hook of a processor throws, and logs it', async () => {
    @Processor('email')
    class Throwing implements OnModuleDestroy {
      @Handle()
      any() {}
      onModuleDestroy() {
        throw new Error('flush failed');
      }
    }
    @Processor('sms')
    class Rejecting {
      @Handle()
      any() {}
      readonly onModuleDestroy = () => Promise.reject(new Error('flush failed too'));
    }
    @Processor('sms')
    class Strange {
      @Handle('strange')
      any() {}
      onModuleDestroy() {
        // No text can be made of it.
        throw Object.create(null);
      }
    }
    const providers = [Throwing, Rejecting, Strange];
    const { app, history, logs } = await startApp(['email', 'sms'], { providers });
    await expect(app.close()).resolves.toBeUndefined();
    expect(history.at(-1)).toBe('engine closed');
    const errors = logs.filter((line) => line.level === 'error').map((line) => line.text);
    expect(errors.toSorted()).toEqual([
      'Rejecting.onModuleDestroy: flush failed too',
      'Strange.onModuleDestroy: {} (object)',
      'Throwing.onModuleDestroy: flush failed',
    ]);
  });

  it('continues when a pool, the events or the engine reject although they should not', async () => {
    class Breaking extends FakePool {
      override async drain(): Promise<never> {
        throw new Error('drain broke');
      }
    }
    const { app, engine, logs } = await startApp(
      ['sms'],
      { providers: [SmsProcessor] },
      { makePool: (...plan) => new Breaking(...plan) },
    );
    engine.close = () => Promise.reject(new Error('close broke'));
    app.get(QueueEvents).close = () => Promise.reject(new Error('events broke'));
    await expect(app.close()).resolves.toBeUndefined();
    expect(logs.filter((line) => line.level === 'error').map((line) => line.text)).toEqual([
      "draining queue 'sms': drain broke",
      'closing the event streams: events broke',
      'closing the connections: close broke',
    ]);
  });

  it('logs how the drain ended', async () => {
    class Late extends FakePool {
      override async drain() {
        return { finished: 3, released: ['job-1', 'job-2'], endedAt: performance.now() };
      }
    }
    const { app, logs } = await startApp(
      ['sms'],
      { providers: [SmsProcessor] },
      { makePool: (...plan) => new Late(...plan) },
    );
    await app.close();
    expect(logs).toContainEqual({
      level: 'log',
      text: "queue 'sms' stopped: 3 running jobs finished meanwhile, 2 given back",
    });
  });

  it('warns of a frozen processor, whose drain it cannot place', async () => {
    const { app, logs, history } = await startApp(['sms'], {
      providers: [{ provide: SmsProcessor, useValue: Object.freeze(new SmsProcessor()) }],
    });
    expect(logs.filter((line) => line.level === 'warn').map((line) => line.text)).toEqual([
      'SmsProcessor is frozen, so the shutdown cannot wait for its jobs before it closes what they use; do not freeze it',
    ]);
    await app.close();
    expect(history.slice(-3)).toEqual(['sms drained', 'services stopped', 'engine closed']);
  });
});
