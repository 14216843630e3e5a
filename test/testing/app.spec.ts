import { createRequire } from 'node:module';
import { Body, Controller, Injectable, Module, Post, type INestApplication, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { InjectQueue } from '#lib/decorators/inject-queue.decorator.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import type { Job } from '#lib/job/job.js';
import { QueueProducer } from '#lib/producer/queue-producer.js';
import { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { QueueTesting, QueueTestingModule, type QueueTestingOptions } from '#lib/subpaths/testing.js';
import { atEnd } from '../support/cleanup.js';
import { latch } from '../support/wait.js';

let touched = 0;

@Injectable()
class Outbox {
  readonly sent: string[] = [];
}

@Controller('signup')
class SignupController {
  constructor(
    private readonly producer: QueueProducer,
    @InjectQueue('email') private readonly emails: Queue,
  ) {}

  @Post()
  async signup(@Body() { email }: { email: string }) {
    await this.producer.add('email', 'welcome', { to: email }, { id: `welcome-${email}` });
    await this.emails.add('remind', { to: email }, { delay: '3d' });
    return { ok: true };
  }

  @Post('now')
  now(@Body() { email }: { email: string }) {
    return this.emails.addAndWait('welcome', { to: email });
  }
}

@Processor('email', { concurrency: 5 })
class EmailProcessor {
  constructor(private readonly outbox: Outbox) {}

  @Handle()
  send(job: Job<{ to: string }>) {
    this.outbox.sent.push(`${job.name} ${job.data.to}`);
    return { sent: job.name };
  }
}

@Module({
  imports: [QueueModule.registerQueue({ name: 'email' })],
  controllers: [SignupController],
  providers: [EmailProcessor, Outbox],
})
class EmailModule {}

/** As it is deployed: it would connect at the start, and run by itself. */
@Module({
  imports: [
    QueueModule.forRootAsync({
      useFactory: () => ({
        connection: () => {
          touched += 1;
          throw new Error('a test must not connect');
        },
        prefix: 'shop',
        defaults: { attempts: 7 },
      }),
    }),
    EmailModule,
  ],
})
class AppModule {}

interface Started {
  readonly app: INestApplication;
  readonly testing: QueueTesting;
  readonly outbox: Outbox;
  readonly post: (path: string, email: string) => Promise<unknown>;
}

async function start(root: Type = AppModule, options?: QueueTestingOptions): Promise<Started> {
  const module = await Test.createTestingModule({ imports: [root, QueueTestingModule.forRoot(options)] })
    .setLogger(false as never)
    .compile();
  const app = module.createNestApplication({ forceCloseConnections: true });
  atEnd(() => app.close());
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const post = async (path: string, email: string): Promise<unknown> => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify({ email }) });
    return answer.json();
  };
  return { app, testing: app.get(QueueTesting), outbox: app.get(Outbox), post };
}

describe('a whole application over HTTP', () => {
  it('is tested without Redis and without changes, and no job runs on its own', async () => {
    const { app, testing, outbox, post } = await start();
    const email = testing.queue('email');
    expect(await post('/signup', 'ada@example.com')).toEqual({ ok: true });
    expect(email.added()).toMatchObject([
      { name: 'welcome', data: { to: 'ada@example.com' }, options: { id: 'welcome-ada@example.com' } },
      { name: 'remind', delay: 259_200_000 },
    ]);
    expect(app.get(QueueRuntime).state).toBe('new');
    expect(outbox.sent).toEqual([]);
    await email.drain();
    expect(outbox.sent).toEqual(['welcome ada@example.com']);
    await testing.advance('3d', { run: true });
    expect(outbox.sent).toEqual(['welcome ada@example.com', 'remind ada@example.com']);
    expect(await post('/signup/now', 'bob@example.com')).toEqual({ sent: 'welcome' });
  });

  it('keeps the options of the application, but for those of the test', async () => {
    const { app, testing } = await start(AppModule, { maxPayloadBytes: 20 });
    const emails = app.get(QueueProducer);
    await expect(emails.add('email', 'x', 'a'.repeat(30))).rejects.toThrow('maxPayloadBytes (20)');
    await emails.add('email', 'x', 'a');
    const job = await testing.queue('email').runNext();
    expect(job).toMatchObject({ outcome: 'completed' });
    const { id } = await emails.add('email', 'y', 'b');
    const queue = app.get<Queue>('godwit:queue:email', { strict: false });
    expect(await queue.get(id)).toMatchObject({ attempts: 7 });
  });

  it('has the queues of other configurations in the same store, with their options', async () => {
    const connection = () => {
      touched += 1;
      throw new Error('a test must not connect');
    };
    const imports = [
      QueueModule.forRoot('reports', { connection, defaults: { attempts: 9 } }),
      QueueModule.registerQueue({ name: 'monthly', configKey: 'reports' }),
      AppModule,
      QueueTestingModule.forRoot(),
    ];
    const module = await Test.createTestingModule({ imports })
      .setLogger(false as never)
      .compile();
    await module.init();
    const { id } = await module.get(QueueProducer).add('monthly', 'x', {});
    expect(module.get(QueueTesting).queue('monthly').added()).toHaveLength(1);
    expect(await module.get<Queue>('godwit:queue:monthly', { strict: false }).get(id)).toMatchObject({
      attempts: 9,
    });
  });

  it('needs no configuration for a module that names one', async () => {
    const imports = [
      QueueTestingModule.forRoot(),
      QueueModule.registerQueue({ name: 'monthly', configKey: 'reports' }),
    ];
    const module = await Test.createTestingModule({ imports })
      .setLogger(false as never)
      .compile();
    await module.init();
    await module.get(QueueProducer).add('monthly', 'x', {});
    expect(module.get(QueueTesting).queue('monthly').added()).toHaveLength(1);
  });

  it('has made no connection to Redis in these tests', () => {
    expect(touched).toBe(0);
    const loaded = Object.keys(createRequire(import.meta.url).cache);
    expect(loaded.some((path) => path.includes('express'))).toBe(true);
    expect(loaded.filter((path) => path.includes('ioredis'))).toEqual([]);
  });

  it('would connect without the testing module', async () => {
    const module = await Test.createTestingModule({ imports: [AppModule] })
      .setLogger(false as never)
      .compile();
    await module.init().catch(() => undefined);
    // Nest 11 logs the failed start here once more.
    await module.close().catch(() => undefined);
    expect(touched).toBeGreaterThan(0);
  });

  it('accepts an engine of the test under the exported token', async () => {
    const engine = {
      now: () => 0,
      onLink: () => () => {},
      onWarning: () => () => {},
      open: async () => true,
    };
    const before = touched;
    const module = await Test.createTestingModule({ imports: [AppModule] })
      .overrideProvider(QUEUE_ENGINE)
      .useValue({ ...engine, close: async () => {}, closeEvents: async () => {} })
      .setLogger(false as never)
      .compile();
    expect(module.get(QUEUE_ENGINE, { strict: false })).toMatchObject({ now: engine.now });
    expect(touched).toBe(before);
  });
});

describe('workers that run by themselves', () => {
  it('run the added jobs, and idle waits for them', async () => {
    const { testing, outbox, post } = await start(AppModule, { autoStart: true });
    await Promise.all(['a', 'b', 'c'].map((name) => post('/signup', name)));
    await testing.idle();
    expect(outbox.sent.toSorted()).toEqual(['welcome a', 'welcome b', 'welcome c']);
    expect(testing.queue('email').completed()).toHaveLength(3);
    expect(await post('/signup/now', 'd')).toEqual({ sent: 'welcome' });
    await testing.advance('3d');
    await testing.idle();
    expect(outbox.sent.filter((line) => line.startsWith('remind'))).toHaveLength(3);
  });

  it('refuse to be run by hand, with a message', async () => {
    const { testing } = await start(AppModule, { autoStart: true });
    await expect(testing.drain()).rejects.toThrow('wait for them with testing.idle()');
    await expect(testing.queue('email').runNext()).rejects.toThrow('the workers run by themselves here');
  });

  it('can be started by the test, and stopped', async () => {
    const { app, testing, outbox, post } = await start();
    await post('/signup', 'ada');
    await expect(testing.idle()).rejects.toThrow('no workers run here');
    await app.get(QueueRuntime).start();
    await testing.idle();
    expect(outbox.sent).toEqual(['welcome ada']);
    await app.get(QueueRuntime).stop();
    await testing.advance('3d');
    expect(outbox.sent).toHaveLength(1);
    await testing.drain();
    expect(outbox.sent).toHaveLength(2);
  });

  it('have nothing to do once the last job is removed, or the queue is paused', async () => {
    const { app, testing } = await start(AppModule, { autoStart: true });
    const queue = app.get(QueueProducer).queue('email');
    await queue.limits.hold('1d');
    const acts = [
      (id: string) => queue.remove(id),
      () => queue.remove({ state: 'waiting' }),
      () => queue.obliterate(),
      () => queue.pause(),
    ];
    for (const act of acts) {
      const { id } = await queue.add('x', {});
      await queue.limits.hold('1d');
      await expect(testing.idle({ timeout: 0 })).rejects.toThrow('there is still work');
      const idle = testing.idle({ timeout: '1h' });
      await act(id);
      await idle;
    }
  });

  it('that never end are named', async () => {
    const { app, testing } = await start(AppModule, { autoStart: true, shutdown: { timeout: 0, grace: 0 } });
    const entered = latch('the handler runs');
    const send = () => {
      entered.open();
      return new Promise(() => {});
    };
    Object.assign(app.get(EmailProcessor), { send });
    await app.get(QueueProducer).add('email', 'x', {});
    await entered.wait();
    await expect(testing.idle({ timeout: 50 })).rejects.toThrow(
      "idle(): after 50 ms there is still work: 1 running and 0 waiting in queue 'email'",
    );
  });
});

describe('mistakes', () => {
  it('a module that is not initialised is reported', async () => {
    const module = await Test.createTestingModule({
      imports: [QueueTestingModule.forRoot(), EmailModule],
    }).compile();
    const testing = module.get(QueueTesting);
    await expect(testing.run('email', 'welcome', {})).rejects.toThrow('await module.init() after compile()');
    await expect(testing.queue('email').drain()).rejects.toThrow('await module.init() after compile()');
  });

  it('a testing module that is imported twice is reported', async () => {
    const imports = [QueueTestingModule.forRoot(), QueueTestingModule.forRoot(), EmailModule];
    const module = await Test.createTestingModule({ imports })
      .setLogger(false as never)
      .compile();
    await expect(module.init()).rejects.toThrow('QueueTestingModule.forRoot() is imported more than once');
  });

  it('invalid options are reported as usual', async () => {
    const imports = [QueueTestingModule.forRoot({ prefx: 'x' } as never), EmailModule];
    const module = await Test.createTestingModule({ imports })
      .setLogger(false as never)
      .compile();
    await expect(module.init()).rejects.toThrow('prefx');
  });
});
