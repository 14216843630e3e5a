import { describe, expect, it } from 'vitest';
import type { ExchangeAnswer, ExchangeCall, QueueEngine } from '#lib/contract/engine.js';
import { RedisUnavailableError } from '#lib/errors.js';
import type { Outcome, SettledRun } from '#lib/job/outcome.js';
import { Exchanger, type ExchangeSide } from '#lib/worker/exchanger.js';
import { atEnd } from '../support/cleanup.js';
import { endOfTurn, until } from '../support/wait.js';

/** An exchanger whose calls are answered by hand. */
function exchangerOf(more: Partial<ExchangeSide> = {}) {
  const calls: ExchangeCall[] = [];
  const answers: ((answer: ExchangeAnswer) => void)[] = [];
  const failures: ((error: Error) => void)[] = [];
  const engine = {
    exchange: (_queue: string, call: ExchangeCall) => {
      calls.push(call);
      return new Promise((resolve, reject) => {
        answers.push(resolve);
        failures.push(reject);
      });
    },
  } as unknown as QueueEngine;
  const lost: string[] = [];
  const side: ExchangeSide = {
    queue: 'work',
    leaseMs: 1_000,
    want: () => 1,
    isWorthBeside: () => false,
    maxBytes: 1_000,
    isNarrow: false,
    maySuspect: () => true,
    holdsAny: () => true,
    asking: () => {},
    nothingToAsk: () => {},
    exchanged: () => {},
    startClaimed: () => {},
    renamed: () => {},
    leaseLost: (settled) => lost.push(...settled.map((run) => run.id)),
    trouble: () => {},
    ...more,
  };
  const exchanger = new Exchanger(engine, side);
  atEnd(() => exchanger.stop());
  return { exchanger, calls, answers, failures, lost };
}

const run = (id: string, outcome: Outcome = { kind: 'completed' }): SettledRun => ({
  id,
  name: 'job',
  attempt: 1,
  durationUs: 1,
  outcome,
});

const NOTHING: ExchangeAnswer = {
  kind: 'exchanged',
  supply: 'empty',
  dueInMs: null,
  leaseInMs: null,
  scheduleInMs: null,
  isCut: false,
  held: 0,
  lost: [],
  claimed: [],
};

it('says nothing under its new name that was settled under the old one', async () => {
  const { exchanger, calls, answers, lost } = exchangerOf();
  exchanger.settle(run('on its way'));
  await until(() => calls.length === 1);
  exchanger.settle(run('next'));
  answers[0]!({ kind: 'unknown-worker' });
  await until(() => calls.length === 2);
  expect(calls[1]!.worker).not.toBe(calls[0]!.worker);
  expect(calls[1]!.settled).toEqual([]);
  expect(lost).toEqual(['on its way', 'next']);
});

it.each([
  ['completed', { kind: 'completed' }, 500],
  ['completed and kept', { kind: 'completed', keep: { forMs: 1, result: undefined } }, 250],
  ['released', { kind: 'released' }, 250],
] as const)('says of %s runs at most so many at once, in their order', async (_, outcome, most) => {
  const { exchanger, calls, answers } = exchangerOf();
  const ids = Array.from({ length: most + 7 }, (_one, i) => `${i}`);
  for (const id of ids) exchanger.settle(run(id, outcome));
  await until(() => calls.length === 1);
  answers[0]!(NOTHING);
  await until(() => calls.length === 2);
  expect(calls.map(({ settled }) => settled.length)).toEqual([most, 7]);
  expect(calls.flatMap(({ settled }) => settled.map(({ id }) => id))).toEqual(ids);
});

it('lets the next exchange go before what it was given starts', async () => {
  const order: string[] = [];
  const { exchanger, calls, answers } = exchangerOf({
    asking: () => order.push('asks'),
    exchanged: () => order.push('takes'),
    startClaimed: () => order.push('starts'),
  });
  exchanger.settle(run('first'));
  await until(() => calls.length === 1);
  exchanger.settle(run('second'));
  answers[0]!(NOTHING);
  await until(() => calls.length === 2);
  expect(order).toEqual(['asks', 'takes', 'asks', 'starts']);
});

it('lets it go before also where nothing is settled, but more is wanted', async () => {
  const order: string[] = [];
  const { exchanger, calls, answers } = exchangerOf({
    asking: () => order.push('asks'),
    exchanged: () => exchanger.kick(),
    startClaimed: () => order.push('starts'),
  });
  exchanger.kick();
  await until(() => calls.length === 1);
  answers[0]!(NOTHING);
  await until(() => calls.length === 2);
  expect(order).toEqual(['asks', 'asks', 'starts']);
});

it('keeps nothing of a settled run but what is said of it', async () => {
  const { exchanger, calls } = exchangerOf();
  const whole = { ...run('first'), data: { note: 'large' } };
  exchanger.settle(whole);
  await until(() => calls.length === 1);
  expect(calls[0]!.settled).toEqual([run('first')]);
});

describe('two on their way', () => {
  /** With its first exchange answered, and so many that may run at once: each exchange claims up to 3. */
  async function known(slots: number, more: Partial<ExchangeSide> = {}) {
    const made = exchangerOf({
      want: (asked) => Math.min(3, slots - asked),
      isWorthBeside: (want) => want > 1,
      ...more,
    });
    made.exchanger.kick();
    await until(() => made.calls.length === 1);
    made.answers[0]!(NOTHING);
    await until(() => !made.exchanger.busy);
    return made;
  }
  const asked = (calls: readonly ExchangeCall[]) =>
    calls.slice(1).map(({ seq, beside, want }) => [beside ? 'beside' : 'first', seq, want]);

  it('go out where the second one claims what is worth it, and never three', async () => {
    const { exchanger, calls, answers } = await known(100);
    exchanger.kick();
    await until(() => calls.length === 3);
    exchanger.settle(run('waits'));
    await endOfTurn();
    expect(asked(calls)).toEqual([
      ['first', 2, 3],
      ['beside', 1, 3],
    ]);
    answers[2]!(NOTHING);
    await until(() => calls.length === 4);
    expect(asked(calls)[2]).toEqual(['beside', 2, 3]);
    expect(calls[3]!.settled).toMatchObject([{ id: 'waits' }]);
    answers[1]!(NOTHING);
    await endOfTurn();
    exchanger.kick();
    await until(() => calls.length === 5);
    expect(asked(calls)[3]).toEqual(['first', 3, 3]);
  });

  it('go out once there is room, which the ends of jobs may make before the answer', async () => {
    let slots = 4;
    const { exchanger, calls } = await known(0, { want: (all) => Math.min(3, slots - all) });
    exchanger.kick();
    await until(() => calls.length === 2);
    await endOfTurn();
    expect(calls).toHaveLength(2);
    slots = 6;
    exchanger.settle(run('ended'));
    await until(() => calls.length === 3);
    expect(asked(calls)).toEqual([
      ['first', 2, 3],
      ['beside', 1, 3],
    ]);
    expect(calls[2]!.settled).toMatchObject([{ id: 'ended' }]);
  });

  it('are one where a worker is not known yet', async () => {
    const { exchanger, calls } = exchangerOf({ want: () => 3, isWorthBeside: () => true });
    exchanger.kick();
    await until(() => calls.length === 1);
    exchanger.kick();
    await endOfTurn();
    expect(calls).toHaveLength(1);
  });

  it('bring one suspect at most', async () => {
    const { exchanger, calls } = await known(100);
    exchanger.kick();
    await until(() => calls.length === 3);
    expect(calls.slice(1).map(({ maySuspect }) => maySuspect)).toEqual([true, false]);
  });

  it('count as unconfirmed, both, until each is answered', async () => {
    const { exchanger, calls, answers } = await known(100);
    exchanger.settle(run('a'));
    await until(() => calls.length === 3);
    exchanger.settle(run('b'));
    answers[2]!(NOTHING);
    await until(() => calls.length === 4);
    expect(exchanger.unconfirmedIds()).toEqual(['a', 'b']);
    expect(exchanger.unconfirmed()).toBe(2);
    answers[3]!(NOTHING);
    await endOfTurn();
    expect(exchanger.unconfirmedIds()).toEqual(['a']);
  });

  it('are lost together with the lease, once; what the late one was given under the old name is not taken', async () => {
    const taken: string[] = [];
    const { exchanger, calls, answers, lost } = await known(100, {
      exchanged: ({ claimed }) => taken.push(...claimed.map(({ id }) => id)),
    });
    exchanger.settle(run('a'));
    await until(() => calls.length === 3);
    exchanger.settle(run('b'));
    answers[1]!({ kind: 'unknown-worker' });
    await endOfTurn();
    expect(lost).toEqual(['a', 'b']);
    const { worker } = exchanger;
    expect(worker).not.toBe(calls[1]!.worker);
    answers[2]!({ ...NOTHING, claimed: [{ id: 'c', body: 'work\n', failed: 0, stalls: 0 }] });
    await endOfTurn();
    expect([taken, exchanger.worker]).toEqual([[], worker]);
    expect(asked(calls)[2]).toEqual(['first', 1, 3]);
  });

  it('are made again each with its own number, and nothing is compared with what they were given', async () => {
    const { exchanger, calls, failures, answers } = await known(100);
    exchanger.kick();
    await until(() => calls.length === 3);
    expect(exchanger.isRepeating).toBe(false);
    failures[2]!(new RedisUnavailableError('exchange', 'unknown', 'gone'));
    await until(() => exchanger.isRepeating);
    await until(() => calls.length === 4);
    expect(calls[3]).toEqual(calls[2]);
    answers[3]!(NOTHING);
    await endOfTurn();
    expect([exchanger.isRepeating, exchanger.answers]).toEqual([false, 2]);
  });
});
