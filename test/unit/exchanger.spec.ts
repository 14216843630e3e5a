import { expect, it } from 'vitest';
import type { ExchangeAnswer, ExchangeCall, QueueEngine } from '#lib/engine/engine.js';
import type { SettledRun } from '#lib/job/outcome.js';
import { Exchanger, type ExchangeSide } from '#lib/worker/exchanger.js';
import { until } from '../support/wait.js';

it('says nothing under its new name that was settled under the old one', async () => {
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
  };
  const run = (id: string): SettledRun => ({
    id,
    name: 'job',
    attempt: 1,
    durationUs: 1,
    outcome: { kind: 'completed' },
  });

  const exchanger = new Exchanger(engine, side);
  exchanger.settle(run('on its way'));
  await until(() => calls.length === 1);
  exchanger.settle(run('next'));
  answers[0]!({ kind: 'unknown-worker' });
  await until(() => calls.length === 2);
  expect(calls[1]!.worker).not.toBe(calls[0]!.worker);
  expect(calls[1]!.settled).toEqual([]);
  expect(lost).toEqual(['on its way', 'next']);
  exchanger.stop();
});
