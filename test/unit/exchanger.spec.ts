import { expect, it } from 'vitest';
import type { ExchangeAnswer, ExchangeCall, QueueEngine } from '#lib/engine/engine.js';
import type { Outcome, SettledRun } from '#lib/job/outcome.js';
import { Exchanger, type ExchangeSide } from '#lib/worker/exchanger.js';
import { atEnd } from '../support/cleanup.js';
import { until } from '../support/wait.js';

/** An exchanger whose calls are answered by hand. */
function exchangerOf(more: Partial<ExchangeSide> = {}) {
  const calls: ExchangeCall[] = [];
  const answers: ((answer: ExchangeAnswer) => void)[] = [];
  const engine = {
    exchange: (_queue: string, call: ExchangeCall) => {
      calls.push(call);
      return new Promise((resolve) => answers.push(resolve));
    },
  } as unknown as QueueEngine;
  const lost: string[] = [];
  const side: ExchangeSide = {
    queue: 'work',
    leaseMs: 1_000,
    want: () => 1,
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
  return { exchanger, calls, answers, lost };
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
  paused: false,
  dueInMs: null,
  leaseInMs: null,
  scheduleInMs: null,
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

it('keeps nothing of a settled run but what is said of it', async () => {
  const { exchanger, calls } = exchangerOf();
  const whole = { ...run('first'), data: { note: 'large' } };
  exchanger.settle(whole);
  await until(() => calls.length === 1);
  expect(calls[0]!.settled).toEqual([run('first')]);
});
