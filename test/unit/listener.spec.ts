import { describe, expect, it } from 'vitest';
import type { QueueEvent } from '#lib/events/queue-event.js';
import { Backlog, Listener, type ListenerLimits } from '#lib/handlers/listeners/listener.js';
import { latch, until } from '../support/wait.js';

const at = new Date();
const event = (number: number): QueueEvent => ({
  eventId: String(number),
  type: 'added',
  queue: 'q',
  at,
  jobId: `job ${number}`,
  name: 'n',
});

function listenerOf(call: (event: QueueEvent) => unknown, limits: Partial<ListenerLimits> = {}) {
  const logged: string[] = [];
  const log = (line: string) => void logged.push(line);
  const plan = {
    label: 'Audit.added',
    instance: { added: call },
    method: 'added',
    types: new Set(['added'] as const),
    queues: ['q'],
    concurrency: 1,
  };
  const logger = { warn: log, error: log };
  return { logged, listener: new Listener(plan, logger, { waiting: 3, callMs: 60_000, ...limits }) };
}

describe('a listener that does not keep up', () => {
  it('has a bounded number of waiting events: the oldest are dropped, which is logged when it begins and when it ends', async () => {
    const gate = latch();
    const heard: string[] = [];
    const { listener, logged } = listenerOf(async ({ eventId: id }) => {
      heard.push(id);
      await gate.promise;
    });
    for (let number = 1; number <= 10; number++) listener.receive(event(number));
    expect(listener.pending).toBe(4);
    expect(logged).toEqual([
      'Audit.added does not keep up with the events: 3 wait for it, so the oldest are dropped; ' +
        'make it faster, or raise its concurrency',
    ]);
    gate.open();
    await listener.idle();
    expect(heard).toEqual(['1', '8', '9', '10']);
    expect(logged.slice(1)).toEqual(['Audit.added keeps up with the events again; 6 events dropped']);
  });

  it('is not waited for longer than the limit of a call, and later errors are still logged', async () => {
    const heard: string[] = [];
    const late = latch();
    const { listener, logged } = listenerOf(
      async ({ eventId: id }) => {
        heard.push(id);
        if (id !== '1') return;
        await late.promise;
        throw new Error('at last');
      },
      { callMs: 20 },
    );
    listener.receive(event(1));
    listener.receive(event(2));
    await listener.idle();
    expect(heard).toEqual(['1', '2']);
    late.open();
    await until(() => logged.length === 2);
    expect(logged).toEqual([
      `Audit.added has not finished 'added' of job "job 1" of queue 'q' after 20 ms; it gets further events meanwhile`,
      `Audit.added failed for 'added' of job "job 1" of queue 'q': at last`,
    ]);
    expect(listener.pending).toBe(0);
  });

  it('handles thousands of waiting events without a deep call stack', async () => {
    const gate = latch();
    let heard = 0;
    const { listener } = listenerOf(() => (heard++ === 0 ? gate.promise : undefined), { waiting: 50_000 });
    for (let number = 0; number < 50_000; number++) listener.receive(event(number));
    gate.open();
    await listener.idle();
    expect(heard).toBe(50_000);
  });

  it('is called on its instance, with the method that the instance has at that time', () => {
    const { listener } = listenerOf(() => expect.fail('replaced'));
    const seen: unknown[] = [];
    Object.assign(listener.plan.instance, {
      added(this: unknown, { eventId: id }: QueueEvent) {
        seen.push(this === listener.plan.instance, id);
      },
    });
    listener.receive(event(7));
    expect(seen).toEqual([true, '7']);
  });
});

describe('a backlog', () => {
  it('keeps its order and its length through any sequence of adds and takes', () => {
    const backlog = new Backlog<number>(3);
    expect(backlog.take()).toBeUndefined();
    const model: number[] = [];
    for (let step = 0; step < 200; step++) {
      const puts = step % 7 < 4;
      const isFull = model.length === 3;
      // If it is full, adding one removes the oldest.
      const taken = !puts || isFull ? model.shift() : undefined;
      if (puts) model.push(step);
      expect(puts ? backlog.put(step) : backlog.take()).toBe(puts ? isFull : taken);
      expect(backlog.size).toBe(model.length);
    }
  });
});
