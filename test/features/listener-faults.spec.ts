import { Controller, Inject, Injectable, Scope, type ModuleMetadata } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { OnQueueEvent } from '#lib/decorators/on-queue-event.decorator.js';
import { BootstrapError } from '#lib/errors.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootFaults, withQueues } from './fakes.js';

const TYPES =
  'one or several of added, delayed, active, progress, completed, retrying, dead, stalled, released, removed, cancelled, updated, paused, resumed, breakerOpened, breakerClosed, published';

const any = OnQueueEvent as (...given: unknown[]) => MethodDecorator;

const faultsOf = (metadata: ModuleMetadata) => bootFaults(withQueues(['email', 'sms'], metadata));

const refusalOf = (read: () => unknown): string => {
  try {
    read();
  } catch (error) {
    expect(error).toBeInstanceOf(BootstrapError);
    return (error as BootstrapError).faults.join('\n');
  }
  return expect.fail('it was read');
};

describe('a listener is refused at the start', () => {
  it('in a request-scoped class, itself or through something it injects, and in a transient one', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest {
      @OnQueueEvent('dead')
      dead() {}
    }
    @Injectable()
    class Dependent {
      constructor(readonly inner: PerRequest) {}
      @OnQueueEvent()
      each() {}
    }
    @Controller()
    class Pages {
      constructor(@Inject(REQUEST) readonly request: unknown) {}
      @OnQueueEvent(['added', 'dead'])
      some() {}
    }
    @Injectable({ scope: Scope.TRANSIENT })
    class Fresh {
      @OnQueueEvent('dead')
      dead() {}
    }
    const advice =
      'events come without a request: make the class a singleton, or put the listener on a class that is one';
    const all = { providers: [PerRequest, Dependent, Fresh], controllers: [Pages] };
    expect(await faultsOf(all)).toEqual([
      `PerRequest.dead has @OnQueueEvent("dead"), but PerRequest is request-scoped, itself or through something it injects; ${advice}`,
      `Dependent.each has @OnQueueEvent(), but Dependent is request-scoped, itself or through something it injects; ${advice}`,
      `Fresh.dead has @OnQueueEvent("dead"), but Fresh is transient; ${advice}`,
      `Pages.some has @OnQueueEvent(["added", "dead"]), but Pages is request-scoped, itself or through something it injects; ${advice}`,
    ]);
  });

  it('for a queue or an event that does not exist, or a queue without events, all faults in one error', async () => {
    @Injectable()
    class Wrong {
      @any('finished')
      one() {}
      @any(['dead', 'gone', 7, null], { queue: ['email', 'emial', 'a b'] })
      two() {}
      @any([])
      three() {}
      @any(undefined)
      four() {}
      @any({ queue: [], concurrency: 0 })
      five() {}
      @any('dead', { queue: 'quiet' })
      six() {}
      @any('dead', { queues: 'email' })
      seven() {}
      @any('dead', 'email')
      eight() {}
    }
    const quiet = QueueModule.registerQueue({ name: 'quiet', events: false });
    const known = 'registered: email, sms, quiet';
    expect(await faultsOf({ providers: [Wrong], imports: [quiet] })).toEqual([
      `@OnQueueEvent("finished") of Wrong.one: there is no event "finished" (string); name ${TYPES}`,
      `@OnQueueEvent(["dead", "gone", 7 (number), null (null)]) of Wrong.two: there is no event "gone" (string), 7 (number), null (null); name ${TYPES}`,
      `@OnQueueEvent(["dead", "gone", 7 (number), null (null)]) of Wrong.two.queue: queue 'emial' is not registered; add QueueModule.registerQueue({ name: 'emial' }) to a module (${known})`,
      '@OnQueueEvent(["dead", "gone", 7 (number), null (null)]) of Wrong.two.queue: a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, got "a b" (string)',
      `@OnQueueEvent([]) of Wrong.three: it names no event; name ${TYPES}`,
      `@OnQueueEvent() of Wrong.four: there is no event undefined; name ${TYPES}`,
      '@OnQueueEvent() of Wrong.five.queue: it names no queue; name one or several, or leave it out for all',
      '@OnQueueEvent() of Wrong.five.concurrency must be an integer from 1 to 1000, got 0 (number)',
      `@OnQueueEvent("dead") of Wrong.six.queue: queue 'quiet' writes no events (events: false); switch them on, or leave the queue out`,
      '@OnQueueEvent("dead") of Wrong.seven.queues is not an option; did you mean queue?',
      `@OnQueueEvent("dead") of Wrong.eight: the second argument must be an object such as { queue: 'email' }, got "email" (string)`,
    ]);
  });

  it('with values that cannot be inspected', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    @Injectable()
    class Wrong {
      @any(proxy)
      one() {}
      @any('dead', proxy)
      two() {}
      @any('dead', { queue: proxy })
      three() {}
      @any('dead', {
        get queue() {
          throw new Error('no');
        },
      })
      four() {}
    }
    revoke();
    const faults = await faultsOf({ providers: [Wrong] });
    expect(faults.map((fault) => fault.replace(/, got .*/, ''))).toEqual([
      '@OnQueueEvent() of Wrong.one must be something that can be read',
      '@OnQueueEvent("dead") of Wrong.two must be something that can be read',
      '@OnQueueEvent("dead") of Wrong.three.queue must be something that can be read',
      '@OnQueueEvent("dead") of Wrong.four must be something that can be read',
    ]);
  });

  it('that is hidden by an override without a decorator', async () => {
    class Base {
      @OnQueueEvent('dead')
      dead() {}
    }
    @Injectable()
    class Derived extends Base {
      override dead() {}
    }
    @Injectable()
    class Further extends Derived {}
    expect(await faultsOf({ providers: [Derived, Further] })).toEqual([
      'Derived.dead overrides Base.dead, which has @OnQueueEvent("dead"), and so hides it; decorate the override too, or give it another name',
    ]);
  });
});

describe('a listener is refused when its class is read', () => {
  it('on a static, a getter, a symbol, a property, a parameter and a class', () => {
    const key = Symbol('key');
    const advice = 'put it on an instance method with a plain name';
    const read = [
      () => {
        class Audit {
          @OnQueueEvent('dead')
          static dead() {}
        }
        return Audit;
      },
      () => {
        class Audit {
          // @ts-expect-error not a method
          @OnQueueEvent('dead')
          get dead() {
            return 1;
          }
        }
        return Audit;
      },
      () => {
        class Audit {
          // @ts-expect-error not a plain name
          @OnQueueEvent('dead')
          [key]() {}
        }
        return Audit;
      },
      () => {
        class Audit {
          // @ts-expect-error not a method
          @OnQueueEvent('dead')
          dead = () => {};
        }
        return Audit;
      },
      () => {
        class Audit {
          // @ts-expect-error not a method
          dead(@OnQueueEvent('dead') event: unknown) {
            return event;
          }
        }
        return Audit;
      },
      () => {
        // @ts-expect-error not a method
        @OnQueueEvent('dead')
        class Audit {}
        return Audit;
      },
    ];
    expect(read.map(refusalOf)).toEqual(
      [
        'Audit.dead, which is static',
        'Audit.dead, which is a getter or setter',
        'Audit.Symbol(key), which is named by a symbol',
        'Audit.dead, which is a property',
        'Audit.dead, which is a parameter',
        'Audit, which is a class',
      ].map((place) => `@OnQueueEvent("dead") is on ${place}; ${advice}`),
    );
  });
});
