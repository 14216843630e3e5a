import { Controller, Injectable, type Provider, type Type } from '@nestjs/common';
import { Observable, of, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { OnQueueEvent } from '#lib/decorators/on-queue-event.decorator.js';
import type { EventOf, QueueEvent } from '#lib/events/queue-event.js';
import { useRedis } from '../support/redis.js';
import { bootQueue, Logs, PATIENT, type QueueApp, type QueueAppOptions } from '../support/queue-app.js';
import { latch, until } from '../support/wait.js';

const redis = useRedis();

const boot = (options: QueueAppOptions) => bootQueue(redis, options);
const nothing = { nothing: () => undefined };

/** An application whose only subscriber is a listener of the class. */
const bootListener = (listener: Provider, options: QueueAppOptions = {}) =>
  boot({ handlers: { ...nothing, '*': () => 1 }, watch: false, ...options, providers: [listener] });

const heardBy = <T extends { heard: string[] }>({ get }: QueueApp, type: Type<T>, count: number) =>
  until(() => get(type).heard.length >= count && get(type).heard, {
    ...PATIENT,
    what: () => `${count} events, heard ${get(type).heard.join(', ')}`,
  });

const connections = async (role: string) =>
  (await redis.clients()).filter(({ name }) => name?.includes(role)).length;

/** The log lines about listeners. A test server keeps no append-only file. */
const complaintsOf = ({ complaints }: Logs) => complaints.filter((line) => !line.startsWith('Redis keeps'));

const brief = ({ type, queue, jobId }: QueueEvent) => `${type} ${queue} ${jobId ?? ''}`.trim();

describe('a listener', () => {
  it('gets one type, of one queue', async () => {
    @Injectable()
    class Audit {
      readonly heard: string[] = [];
      readonly durations: number[] = [];

      @OnQueueEvent('completed', { queue: 'work' })
      done(event: EventOf<'completed'>) {
        this.heard.push(brief(event));
        this.durations.push(event.durationUs);
      }
    }
    const app = await bootListener(Audit, { queues: [{ name: 'other' }] });
    await app.queueOf('other').add('x', 1, { id: 'elsewhere' });
    await app.queue.add('nothing', 1, { id: 'a' });
    await app.queue.add('nothing', 1, { id: 'b' });
    expect(await heardBy(app, Audit, 2)).toEqual(['completed work a', 'completed work b']);
    expect(app.get(Audit).durations.every((us) => us >= 0)).toBe(true);
  });

  it('gets several types, several queues, or all types of all queues, each event once', async () => {
    @Injectable()
    class Several {
      readonly heard: string[] = [];
      readonly all: string[] = [];
      readonly list: string[] = [];

      @OnQueueEvent(['added', 'completed'], { queue: ['work', 'other'] })
      both(event: EventOf<'added' | 'completed'>) {
        this.heard.push(brief(event));
      }
      @OnQueueEvent()
      each(event: QueueEvent) {
        this.all.push(brief(event));
      }
      @OnQueueEvent({ queue: 'other' })
      @OnQueueEvent('paused')
      @OnQueueEvent(['paused', 'added'], { queue: 'third' })
      repeated(event: QueueEvent) {
        this.list.push(brief(event));
      }
    }
    const app = await bootListener(Several, { queues: [{ name: 'other' }, { name: 'third' }] });
    await app.queue.add('nothing', 1, { id: 'a' });
    await app.queueOf('other').add('x', 1, { id: 'b' });
    await app.queueOf('third').pause();
    await app.queueOf('third').add('x', 1, { id: 'c' });
    const { heard, all, list } = app.get(Several);
    await until(() => heard.length >= 3 && all.length >= 6 && list.length >= 3, PATIENT);
    expect(heard.toSorted()).toEqual(['added other b', 'added work a', 'completed work a']);
    expect(all.toSorted()).toEqual([
      'active work a',
      'added other b',
      'added third c',
      'added work a',
      'completed work a',
      'paused third',
    ]);
    expect(list.toSorted()).toEqual(['added other b', 'added third c', 'paused third']);
  });

  it('may be a method of a controller, of a value, or of a factory, and an alias gets nothing twice', async () => {
    class Base {
      readonly heard: string[] = [];
      @OnQueueEvent('added')
      added(event: EventOf<'added'>) {
        this.heard.push(brief(event));
      }
    }
    @Controller()
    class Pages extends Base {}
    class Made extends Base {}
    class Given extends Base {}
    @Injectable()
    class Own extends Base {
      @OnQueueEvent('added')
      override added(event: EventOf<'added'>) {
        this.heard.push(`own ${brief(event)}`);
      }
    }
    const given = new Given();
    const { queue, get } = await boot({
      watch: false,
      imports: [{ module: class Web {}, controllers: [Pages] }],
      providers: [
        Own,
        { provide: 'made', useFactory: () => new Made() },
        { provide: 'alias', useExisting: 'made' },
        { provide: 'given', useValue: given },
        { provide: 'again', useValue: given },
      ],
    });
    await queue.add('x', 1, { id: 'a' });
    const all = [get(Pages), get<Base>('made'), given, get(Own)];
    await until(() => all.every(({ heard }) => heard.length > 0), PATIENT);
    await queue.add('x', 1, { id: 'b' });
    await until(() => all.every(({ heard }) => heard.length > 1), PATIENT);
    expect(all.map(({ heard }) => heard)).toEqual([
      ['added work a', 'added work b'],
      ['added work a', 'added work b'],
      ['added work a', 'added work b'],
      ['own added work a', 'own added work b'],
    ]);
  });

  it('gets events in each instance of its class, and two instances are reported', async () => {
    @Injectable()
    class Twice {
      readonly heard: string[] = [];
      @OnQueueEvent('added')
      added(event: EventOf<'added'>) {
        this.heard.push(brief(event));
      }
    }
    const { queue, app, logs } = await boot({
      watch: false,
      imports: [{ module: class Again {}, providers: [{ provide: 'again', useClass: Twice }] }],
      providers: [Twice],
    });
    await queue.add('x', 1, { id: 'a' });
    const all = [app.get(Twice), app.get<Twice>('again', { strict: false })];
    await until(() => all.every(({ heard }) => heard.length === 1), PATIENT);
    expect(complaintsOf(logs)).toEqual([
      'Twice listens to events and is provided twice (RootTestModule and Again), so each event is handled once per instance; ' +
        'provide it in one module and export it from there',
    ]);
  });

  it('gets events in every process that has it, also in one that only adds', async () => {
    @Injectable()
    class Watcher {
      readonly heard: string[] = [];
      @OnQueueEvent('completed')
      done(event: EventOf<'completed'>) {
        this.heard.push(brief(event));
      }
    }
    const logs = new Logs();
    const worker = await bootListener(Watcher, { logs });
    const other = await boot({ root: { role: 'producer' }, watch: false, logs, providers: [Watcher] });
    await other.queue.add('nothing', 1, { id: 'a' });
    expect(await heardBy(worker, Watcher, 1)).toEqual(['completed work a']);
    expect(await heardBy(other, Watcher, 1)).toEqual(['completed work a']);
  });

  it('gets the events of the very first job, and the connection exists only if there are listeners', async () => {
    @Injectable()
    class First {
      readonly heard: string[] = [];
      @OnQueueEvent('active')
      active(event: EventOf<'active'>) {
        this.heard.push(brief(event));
      }
    }
    const logs = new Logs();
    const silent = await boot({ root: { role: 'producer' }, watch: false, logs });
    await silent.queue.add('nothing', 1, { id: 'before' });
    expect(await connections('events')).toBe(0);
    const app = await bootListener(First, { logs });
    expect(await heardBy(app, First, 1)).toEqual(['active work before']);
    expect(await connections('events')).toBe(1);
    await app.close();
    await until(async () => (await connections('events')) === 0);
  });
});

describe('a listener that fails', () => {
  it('is logged with class, method and event, gets the next event, and does not affect others', async () => {
    @Injectable()
    class Bad {
      calls = 0;
      @OnQueueEvent('added')
      throws() {
        this.calls += 1;
        throw new Error('thrown');
      }
      @OnQueueEvent('added')
      async rejects() {
        throw new Error('rejected');
      }
      @OnQueueEvent('added')
      errs() {
        return throwError(() => new Error('errored'));
      }
      @OnQueueEvent('added')
      odd() {
        // oxlint-disable-next-line no-throw-literal, typescript/only-throw-error
        throw null;
      }
      @OnQueueEvent('added')
      getter() {
        return {
          // oxlint-disable-next-line unicorn/no-thenable
          get then() {
            throw new Error('looked at');
          },
        };
      }
    }
    @Injectable()
    class Good {
      readonly heard: string[] = [];
      @OnQueueEvent('added')
      added(event: EventOf<'added'>) {
        this.heard.push(brief(event));
      }
    }
    const app = await boot({ providers: [Bad, Good], watch: false });
    await app.queue.add('x', 1, { id: 'a' });
    await app.queue.add('x', 1, { id: 'b' });
    expect(await heardBy(app, Good, 2)).toEqual(['added work a', 'added work b']);
    await until(() => complaintsOf(app.logs).length >= 10, PATIENT);
    expect(app.get(Bad).calls).toBe(2);
    expect(
      complaintsOf(app.logs)
        .filter((line) => line.includes('"a"'))
        .toSorted(),
    ).toEqual([
      `Bad.errs failed for 'added' of job "a" of queue 'work': errored`,
      `Bad.getter failed for 'added' of job "a" of queue 'work': looked at`,
      `Bad.odd failed for 'added' of job "a" of queue 'work': null (null)`,
      `Bad.rejects failed for 'added' of job "a" of queue 'work': rejected`,
      `Bad.throws failed for 'added' of job "a" of queue 'work': thrown`,
    ]);
  });
});

describe('a slow listener', () => {
  it('finishes one event before it gets the next, whatever it returns, and others do not wait for it', async () => {
    @Injectable()
    class Slow {
      readonly heard: string[] = [];
      readonly fast: string[] = [];
      readonly gate = latch();
      private under = 0;

      @OnQueueEvent('added')
      async one({ jobId }: EventOf<'added'>) {
        this.heard.push(`${jobId} begins`);
        await this.gate.promise;
        this.heard.push(`${jobId} ends`);
      }
      @OnQueueEvent('added')
      stream(): Observable<unknown> {
        return new Observable((subscriber) => {
          this.under += 1;
          if (this.under > 1) throw new Error('two at once');
          const inner = timer(5).subscribe(subscriber);
          return () => {
            this.under -= 1;
            inner.unsubscribe();
          };
        });
      }
      @OnQueueEvent('added')
      quick({ jobId }: EventOf<'added'>) {
        this.fast.push(jobId);
        return of(1);
      }
    }
    const app = await boot({ providers: [Slow], watch: false });
    for (const id of ['a', 'b', 'c']) await app.queue.add('x', 1, { id });
    const slow = app.get(Slow);
    await until(() => slow.fast.length === 3, PATIENT);
    expect(slow.heard).toEqual(['a begins']);
    slow.gate.open();
    await heardBy(app, Slow, 6);
    expect(slow.heard).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
    expect(complaintsOf(app.logs)).toEqual([]);
  });

  it('has as many calls in flight as its concurrency', async () => {
    @Injectable()
    class Wide {
      readonly heard: string[] = [];
      readonly gate = latch();
      @OnQueueEvent('added', { concurrency: 2 })
      async one({ jobId }: EventOf<'added'>) {
        this.heard.push(jobId);
        await this.gate.promise;
      }
      readonly seen: string[] = [];
      @OnQueueEvent('added')
      last({ jobId }: EventOf<'added'>) {
        this.seen.push(jobId);
      }
    }
    const app = await boot({ providers: [Wide], watch: false });
    for (const id of ['a', 'b', 'c']) await app.queue.add('x', 1, { id });
    const wide = app.get(Wide);
    await until(() => wide.seen.length === 3, PATIENT);
    expect(wide.heard).toEqual(['a', 'b']);
    wide.gate.open();
    expect(await heardBy(app, Wide, 3)).toEqual(['a', 'b', 'c']);
  });
});
