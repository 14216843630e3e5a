import { afterEach, describe, expect, it, vi } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { NotRunningError, UnknownQueueError, UnsupportedRedisError } from '#lib/errors.js';
import { QueueProducer } from '#lib/producer/queue-producer.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { QueueRuntime } from '#lib/module/queue.runtime.js';
import { compileApp, gate, startApp, withQueues } from './fakes.js';

@Processor('sms')
class SmsProcessor {
  @Handle()
  quick() {}
}

/** A processor of queue `email` whose jobs wait for the gate. */
function slow() {
  const held = gate();
  @Processor('email')
  class SlowProcessor {
    @Handle()
    async slow() {
      await held.opened;
    }
  }
  return { held, metadata: { providers: [SlowProcessor, SmsProcessor] } };
}

describe('start', () => {
  it('opens no connection before the application is initialised', async () => {
    const { app, engine } = await compileApp(withQueues(['sms'], { providers: [SmsProcessor] }));
    expect(engine.state).toBe('new');
    expect(app.get(QueueRuntime).state).toBe('new');
  });

  it('logs what runs', async () => {
    const { logs } = await startApp(['sms'], { providers: [SmsProcessor] });
    expect(logs).toContainEqual({
      level: 'log',
      text: expect.stringMatching(/^workers started: sms \(concurrency 10\); godwit .* on memory$/),
    });
  });

  it('waits for the call with autoStart: false, while producers work', async () => {
    const root = QueueModule.forRoot({ autoStart: false });
    const { app, pools, history } = await startApp(['sms'], { providers: [SmsProcessor] }, { root });
    expect([app.get(QueueRuntime).state, pools.size]).toEqual(['new', 0]);
    await app.get(QueueProducer).add('sms', 'hello', null);
    await Promise.all([app.get(QueueRuntime).start(), app.get(QueueRuntime).start()]);
    await app.get(QueueRuntime).start();
    expect(app.get(QueueRuntime).state).toBe('running');
    expect(history).toEqual(['engine opened', 'added to sms', 'sms started']);
  });

  it('makes no pools with the role producer', async () => {
    const root = QueueModule.forRoot({ role: 'producer' });
    const { app, pools, history, logs } = await startApp(['sms'], { providers: [SmsProcessor] }, { root });
    expect([app.get(QueueRuntime).state, pools.size]).toEqual(['running', 0]);
    await app.get(QueueProducer).add('sms', 'hello', null);
    expect(history).toEqual(['engine opened', 'added to sms']);
    expect(logs.filter((line) => line.level === 'warn')).toEqual([]);
  });

  it('makes pools, and lets producers work, with the role worker', async () => {
    const root = QueueModule.forRoot({ role: 'worker' });
    const { app, history } = await startApp(['sms'], { providers: [SmsProcessor] }, { root });
    await app.get(QueueProducer).add('sms', 'hello', null);
    expect(history).toEqual(['engine opened', 'sms started', 'added to sms']);
  });

  it('warns of a worker without processors', async () => {
    const { logs } = await startApp(['sms'], {}, { root: QueueModule.forRoot({ role: 'worker' }) });
    const text =
      "forRoot().role is 'worker', but no module has a processor in providers: this process runs no jobs";
    expect(logs).toContainEqual({ level: 'warn', text });
  });

  it('fails if the server is too old, and leaves nothing open', async () => {
    const fakes = await compileApp(withQueues(['sms'], { providers: [SmsProcessor] }));
    fakes.engine.openError = new UnsupportedRedisError('Redis', '6.2.0');
    await expect(fakes.init()).rejects.toThrow(UnsupportedRedisError);
    expect([fakes.engine.state, fakes.pools.size]).toEqual(['closed', 0]);
  });

  it('continues without Redis and logs that, and logs warnings of the engine', async () => {
    const away = await compileApp(withQueues(['sms'], { providers: [SmsProcessor] }));
    away.engine.isThere = false;
    await away.init();
    expect(away.pool('sms').state).toBe('running');
    const text =
      'Redis (localhost:6379, database 0) is not reachable yet; retrying. Jobs start when it answers';
    expect(away.logs).toContainEqual({ level: 'error', text });

    const there = await compileApp(withQueues(['sms'], { providers: [SmsProcessor] }));
    await there.init();
    const warning = { code: 'evicts-keys', message: 'this Redis evicts' } as const;
    expect(there.app.get(QueueRuntime).warnings).toEqual([]);
    there.engine.warn(warning);
    expect(there.logs).toContainEqual({ level: 'warn', text: 'this Redis evicts' });
    expect(there.app.get(QueueRuntime).warnings).toEqual([warning]);
  });

  it('logs once when a connection is lost and once when it is back', async () => {
    const { engine, logs, app } = await startApp(['sms'], {});
    const tell = (state: 'up' | 'down', error?: Error) =>
      engine.listeners.forEach((listener) => listener({ role: 'command', state, ...(error && { error }) }));
    logs.length = 0;
    tell('up');
    tell('down', new Error('connect ECONNREFUSED'));
    tell('down');
    tell('up');
    expect(logs).toEqual([
      { level: 'warn', text: 'the command connection to Redis is down (connect ECONNREFUSED); trying again' },
      { level: 'log', text: 'the command connection to Redis is up' },
    ]);
    await app.close();
    expect(engine.listeners.size).toBe(0);
  });
});

function warned(logs: readonly { text: string }[]): number {
  return logs.filter((line) => line.text.includes('SIGTERM')).length;
}

function boot(root = QueueModule.forRoot()) {
  return startApp(['sms'], { providers: [SmsProcessor] }, { root });
}

describe('the warning about shutdown hooks', () => {
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it('comes once, shortly after the start, if nothing listens to SIGTERM', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    vi.spyOn(process, 'listenerCount').mockReturnValue(0);
    const { app, logs } = await boot();
    expect(warned(logs)).toBe(0);
    vi.advanceTimersByTime(60_000);
    await app.get(QueueRuntime).stop();
    await app.get(QueueRuntime).start();
    vi.advanceTimersByTime(60_000);
    expect(warned(logs)).toBe(1);
  });

  it('does not come if hooks are enabled, even after the start', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const count = vi.spyOn(process, 'listenerCount').mockReturnValue(0);
    const { logs } = await boot();
    count.mockReturnValue(1);
    vi.advanceTimersByTime(60_000);
    expect(warned(logs)).toBe(0);
  });

  it('does not come without workers, or once the application is closed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    vi.spyOn(process, 'listenerCount').mockReturnValue(0);
    const producer = await boot(QueueModule.forRoot({ role: 'producer' }));
    const closed = await boot();
    await closed.app.close();
    vi.advanceTimersByTime(60_000);
    expect([warned(producer.logs), warned(closed.logs)]).toEqual([0, 0]);
  });
});

describe('pause and resume', () => {
  it('reach one pool or all', async () => {
    const { held, metadata } = slow();
    const { app, pool } = await startApp(['email', 'sms'], metadata);
    const runtime = app.get(QueueRuntime);
    const states = () => [pool('email').state, pool('sms').state];
    runtime.pause('email');
    expect(states()).toEqual(['paused', 'running']);
    runtime.pause();
    expect(states()).toEqual(['paused', 'paused']);
    runtime.resume('sms');
    expect(states()).toEqual(['paused', 'running']);
    runtime.resume();
    expect(states()).toEqual(['running', 'running']);
    held.open();
  });

  it('stay in effect over start and stop', async () => {
    const root = QueueModule.forRoot({ autoStart: false });
    const { app, pool, logs } = await startApp(['sms'], { providers: [SmsProcessor] }, { root });
    const runtime = app.get(QueueRuntime);
    runtime.pause('sms');
    await runtime.start();
    expect(pool('sms').state).toBe('new');
    expect(logs).toContainEqual({
      level: 'log',
      text: expect.stringContaining('workers started: sms (concurrency 10, paused);'),
    });
    await runtime.stop();
    await runtime.start();
    expect(pool('sms').state).toBe('new');
    runtime.resume('sms');
    expect(pool('sms').state).toBe('running');
  });

  it('may be called before the application is initialised', async () => {
    const { app, init, pool } = await compileApp(withQueues(['sms'], { providers: [SmsProcessor] }));
    app.get(QueueRuntime).pause();
    await init();
    expect([app.get(QueueRuntime).state, pool('sms').state]).toEqual(['running', 'new']);
  });

  it('refuse a queue that is not registered, but not one without a processor', async () => {
    const { app } = await startApp(['sms', 'idle'], { providers: [SmsProcessor] });
    const runtime = app.get(QueueRuntime);
    expect(() => runtime.pause('smms')).toThrow(new UnknownQueueError('smms', ['sms', 'idle']));
    expect(() => runtime.resume('smms')).toThrow(UnknownQueueError);
    expect(() => runtime.pause('idle')).not.toThrow();
  });

  it('do not wake a pool that is draining', async () => {
    const { held, metadata } = slow();
    const { app, pool } = await startApp(['email', 'sms'], metadata);
    void pool('email').run('job');
    app.get(QueueRuntime).pause('email');
    const stopped = app.get(QueueRuntime).stop();
    app.get(QueueRuntime).resume('email');
    expect(pool('email').state).toBe('paused');
    held.open();
    await stopped;
  });
});

describe('stop and start by hand', () => {
  it('drain and make new pools, while producers go on', async () => {
    const { app, pool, history, engine } = await startApp(['sms'], { providers: [SmsProcessor] });
    const runtime = app.get(QueueRuntime);
    const first = pool('sms');
    const stopping = runtime.stop();
    expect(runtime.state).toBe('draining');
    await Promise.all([stopping, runtime.stop()]);
    await runtime.stop();
    expect([runtime.state, engine.state]).toEqual(['stopped', 'open']);
    await app.get(QueueProducer).add('sms', 'hello', null);
    await runtime.start();
    expect([runtime.state, pool('sms').state]).toEqual(['running', 'running']);
    expect(pool('sms')).not.toBe(first);
    expect(history).toEqual([
      'engine opened',
      'sms started',
      'sms draining',
      'sms drained',
      'services stopped',
      'added to sms',
      'sms started',
    ]);
  });

  it('start once the drain is over, if called during the drain', async () => {
    const { held, metadata } = slow();
    const { app, pool } = await startApp(['email', 'sms'], metadata);
    const runtime = app.get(QueueRuntime);
    const first = pool('email');
    void first.run('job');
    const stopped = runtime.stop();
    const started = runtime.start();
    expect(runtime.state).toBe('draining');
    held.open();
    await Promise.all([stopped, started]);
    expect(runtime.state).toBe('running');
    expect(first.state).toBe('drained');
  });

  it('called at the same time end in the state of the last call', async () => {
    const root = QueueModule.forRoot({ autoStart: false });
    const { app, pools } = await startApp(['sms'], { providers: [SmsProcessor] }, { root });
    const runtime = app.get(QueueRuntime);
    await Promise.all([runtime.start(), runtime.stop(), runtime.start()]);
    expect([runtime.state, pools.get('sms')?.state]).toEqual(['running', 'running']);
    await Promise.all([runtime.stop(), runtime.start(), runtime.stop()]);
    expect([runtime.state, pools.get('sms')?.state]).toEqual(['stopped', 'drained']);
    await Promise.all([runtime.start(), runtime.stop(), runtime.start(), runtime.stop()]);
    expect(runtime.state).toBe('stopped');
  });

  it('start no worker that was stopped while others started, and no worker twice', async () => {
    const root = QueueModule.forRoot({ autoStart: false });
    const { app, pools, history } = await startApp(['sms'], { providers: [SmsProcessor] }, { root });
    const runtime = app.get(QueueRuntime);
    const worker = await runtime.work('tenant-42', () => 1);
    const starting = runtime.start();
    const other = runtime.work('tenant-43', () => 1);
    await worker.stop();
    await Promise.all([starting, other]);
    expect([...pools.keys()].toSorted()).toEqual(['sms', 'tenant-43']);
    expect(history.toSorted()).toEqual(['engine opened', 'sms started', 'tenant-43 started']);
  });

  it('refuse to start before the application is initialised, and start with it then', async () => {
    const { app, init, pool } = await compileApp(withQueues(['sms'], { providers: [SmsProcessor] }));
    await expect(app.get(QueueRuntime).start()).rejects.toThrow(
      'QueueRuntime.start() was called before the application was initialised; await app.init() first',
    );
    await init();
    expect([app.get(QueueRuntime).state, pool('sms').state]).toEqual(['running', 'running']);
  });

  it('stop before the start keeps the application from starting on its own', async () => {
    const fakes = await compileApp(withQueues(['sms'], { providers: [SmsProcessor] }));
    await fakes.app.get(QueueRuntime).stop();
    await fakes.init();
    expect([fakes.app.get(QueueRuntime).state, fakes.pools.size]).toEqual(['stopped', 0]);
  });

  it('refuse to start once the application is closed', async () => {
    const { app } = await startApp(['sms'], { providers: [SmsProcessor] });
    const runtime = app.get(QueueRuntime);
    await app.close();
    await expect(runtime.start()).rejects.toThrow(new NotRunningError('start'));
    await expect(runtime.stop()).resolves.toBeUndefined();
    expect(runtime.state).toBe('stopped');
  });
});
