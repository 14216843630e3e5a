import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Slots, SlotUser, StrictTurns, WeightedTurns, type Turns } from '#lib/worker/slots.js';
import { endOfTurn } from '../support/wait.js';

/** A model of a queue: the waiting jobs are a number, and the test answers the claims. */
class ModelQueue extends SlotUser {
  open = true;
  held = 0;
  ahead = 0;
  gathering = 0;
  waiting = 0;
  asking = 0;
  started = 0;

  constructor(
    slots: Slots,
    weight: number,
    private readonly began: () => void,
  ) {
    super(slots, weight);
  }

  /** Claims what its turn allows. */
  exchangeSoon(): void {
    if (this.asking > 0) return;
    const want = this.open ? this.room() : 0;
    if (want <= 0) return;
    this.asking = want;
    this.claimSent(want);
  }

  answer(): void {
    const asked = this.asking;
    if (asked === 0) return;
    const got = Math.min(asked, this.waiting);
    this.asking = 0;
    this.waiting -= got;
    this.held += got;
    this.slots.fill();
    this.claimAnswered(asked, got < asked ? 'empty' : 'more');
    // A paused queue keeps no turn.
    if (!this.open) this.giveBack();
  }

  flush(): void {}

  startOne(): boolean {
    this.held -= 1;
    this.started += 1;
    this.slots.running += 1;
    this.began();
    return true;
  }

  noSlot(): void {}

  giveBack(): void {
    this.waiting += this.held;
    this.held = 0;
    this.openChanged();
  }
}

/** A pool of queues with these weights. The test answers its claims. */
function poolOf(total: number, turns: Turns, weights: readonly number[]) {
  const slots = new Slots(total, turns);
  const order: number[] = [];
  const queues = weights.map((weight, i) => {
    return new ModelQueue(slots, weight, () => order.push(i));
  });
  /** Answers claims until none is left. */
  const calm = async () => {
    for (let i = 0; i < 100; i++) {
      slots.changed();
      await endOfTurn();
      if (queues.every(({ asking }) => asking === 0)) return;
      for (const queue of queues) queue.answer();
      await endOfTurn();
    }
    throw new Error('it asks for ever');
  };
  /** One of the running jobs ends. */
  const ends = (queue: ModelQueue) => {
    queue.started -= 1;
    slots.free();
    slots.fill();
  };
  return { slots, queues, order, calm, ends };
}

describe('slots of one queue', () => {
  it('are requested with the prefetch, and never given out twice', () => {
    const { slots, queues } = poolOf(3, new StrictTurns(), [1]);
    const [queue] = queues as [ModelQueue];
    queue.ahead = 5;
    expect(queue.room()).toBe(8);
    queue.waiting = 100;
    queue.exchangeSoon();
    queue.answer();
    expect([slots.running, queue.held, queue.room()]).toEqual([3, 5, 0]);
  });

  it('give back prefetched jobs in the call that reduces them, while all jobs run', () => {
    const { slots, queues } = poolOf(3, new StrictTurns(), [1]);
    const [queue] = queues as [ModelQueue];
    queue.ahead = 5;
    queue.waiting = 100;
    queue.exchangeSoon();
    queue.answer();
    slots.resize(2);
    expect([slots.running, queue.held, queue.waiting]).toEqual([3, 0, 97]);
    slots.resize(4);
    expect(queue.waiting).toBe(97);
  });
});

describe('slots of several queues', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('add' as const), queue: fc.nat(3), jobs: fc.integer({ min: 1, max: 9 }) }),
    fc.record({ kind: fc.constant('end' as const), queue: fc.nat(3) }),
    fc.record({ kind: fc.constant('answer' as const), queue: fc.nat(3) }),
    fc.record({ kind: fc.constant('ask' as const), queue: fc.nat(3) }),
    fc.record({ kind: fc.constant('pause' as const), queue: fc.nat(3) }),
    fc.record({ kind: fc.constant('turn' as const), queue: fc.constant(0) }),
  );
  const kinds: [string, () => Turns][] = [
    ['in order', () => new StrictTurns()],
    ['by weight', () => new WeightedTurns()],
  ];

  it.each(kinds)(
    '%s: never more run than there are slots, and none stays free while a job waits',
    async (_, make) => {
      const property = fc.asyncProperty(
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 4 }),
        fc.array(step, { maxLength: 60 }),
        async (total, weights, steps) => {
          const { slots, queues, calm, ends } = poolOf(total, make(), weights);
          for (const { kind, queue: number, ...more } of steps) {
            const queue = queues[number % queues.length]!;
            if (kind === 'add') {
              queue.waiting += (more as { jobs: number }).jobs;
              if (queue.rings()) queue.exchangeSoon();
            } else if (kind === 'end' && queue.started > 0) ends(queue);
            else if (kind === 'answer') queue.answer();
            else if (kind === 'ask') queue.exchangeSoon();
            else if (kind === 'pause') {
              queue.open = !queue.open;
              queue.giveBack();
            } else if (kind === 'turn') await endOfTurn();
            expect(slots.running).toBeLessThanOrEqual(total);
          }
          await calm();
          const waiting = queues
            .filter(({ open }) => open)
            .reduce((sum, one) => sum + one.waiting + one.held, 0);
          expect(slots.running === total || waiting === 0).toBe(true);
        },
      );
      await fc.assert(property, { numRuns: 150 });
    },
  );

  it('in order: what starts next is of the first queue that has a job', async () => {
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.nat(12), { minLength: 2, maxLength: 5 }),
      fc.array(fc.nat(4), { maxLength: 40 }),
      async (total, backlogs, late) => {
        const { queues, order, calm, ends } = poolOf(
          total,
          new StrictTurns(),
          backlogs.map(() => 1),
        );
        backlogs.forEach((jobs, i) => (queues[i]!.waiting = jobs));
        const expected = backlogs.flatMap((jobs, i) => Array.from({ length: jobs }, () => i)).slice(0, total);
        await calm();
        expect(order).toEqual(expected);
        for (const number of late) {
          const first = queues[number % queues.length]!;
          // The pool is full, so nobody wakes it.
          first.waiting += 1;
          const running = queues.find(({ started }) => started > 0);
          if (!running) break;
          const full = queues.reduce((sum, { started }) => sum + started, 0) === total;
          ends(running);
          const next = queues.findIndex(({ waiting, held }) => waiting + held > 0);
          const before = order.length;
          await calm();
          expect(full ? order[before] : next).toBe(next);
        }
      },
    );
    await fc.assert(property, { numRuns: 150 });
  });

  it('by weight: while all have jobs each gets its share, and none waits longer than it must', async () => {
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 4 }),
      async (total, weights) => {
        const { queues, order, calm, ends } = poolOf(total, new WeightedTurns(), weights);
        const all = weights.reduce((sum, weight) => sum + weight, 0);
        const rounds = 8;
        for (const queue of queues) queue.waiting = all * (rounds + 2);
        for (;;) {
          await calm();
          if (order.length >= all * rounds) break;
          ends(queues.find(({ started }) => started > 0)!);
        }
        for (const [i, weight] of weights.entries()) {
          const places = order.flatMap((one, at) => (one === i ? [at] : []));
          const share = places.filter((at) => at < all * rounds).length;
          expect(Math.abs(share - weight * rounds)).toBeLessThanOrEqual(weights.length);
          const waits = places.map((at, n) => at - (places[n - 1] ?? -1));
          expect(Math.max(...waits)).toBeLessThanOrEqual(Math.ceil(all / weight) + weights.length + total);
        }
      },
    );
    await fc.assert(property, { numRuns: 60 });
  });

  it('by weight: a queue that was empty for long neither catches up nor waits', async () => {
    const { queues, order, calm, ends } = poolOf(1, new WeightedTurns(), [1, 1]);
    const [first, second] = queues as [ModelQueue, ModelQueue];
    first.waiting = 200;
    for (let i = 0; i < 100; i++) {
      await calm();
      ends(queues.find(({ started }) => started > 0)!);
    }
    second.waiting = 100;
    order.length = 0;
    for (let i = 0; i < 20; i++) {
      await calm();
      ends(queues.find(({ started }) => started > 0)!);
    }
    const share = order.slice(0, 20).filter((one) => one === 1).length;
    expect(share).toBeGreaterThanOrEqual(8);
    expect(share).toBeLessThanOrEqual(12);
  });

  it('do not wait for a queue whose store cannot be reached', async () => {
    for (const [, make] of kinds) {
      const { queues, order } = poolOf(2, make(), [9, 1]);
      const [away, there] = queues as [ModelQueue, ModelQueue];
      there.waiting = 5;
      away.exchangeSoon();
      expect(away.asking).toBeGreaterThan(0);
      away.claimFailed();
      await endOfTurn();
      there.exchangeSoon();
      expect(there.asking).toBeGreaterThan(0);
      there.answer();
      expect(order.length).toBeGreaterThan(0);
      expect(new Set(order)).toEqual(new Set([1]));
    }
  });
});
