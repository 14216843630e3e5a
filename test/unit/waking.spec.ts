import { expect, it, vi } from 'vitest';
import type { ExchangeAnswer } from '#lib/contract/engine.js';
import { atEnd } from '../support/cleanup.js';
import { latch, until } from '../support/wait.js';
import { claimed, idle, withoutBell, type SlowEngine } from './slow-engine.js';

/** A pool whose jobs do not end. It has found its line empty and sleeps. */
async function sleeping(concurrency = 1): Promise<SlowEngine> {
  const engine = withoutBell();
  const gate = latch('the end of the job');
  await idle({ engine, concurrency, run: () => gate.promise });
  atEnd(() => gate.open());
  await until(() => engine.blocks.length === 1);
  return engine;
}

it('passes on a bell that woke it without need, because its claim in flight had filled the last slot', async () => {
  const engine = await sleeping();
  engine.blocks[0]!.open('work');
  await until(() => engine.exchanges.length === 2 && engine.blocks.length === 2);
  // The claim rings for the jobs that it leaves, and the worker hears that bell before it gets the answer of the claim.
  engine.blocks[1]!.open('work');
  await until(() => engine.blocks.length === 3);
  engine.exchanges[1]!.answer.open(claimed('a'));
  await until(() => engine.rings.length === 1);
  expect(engine.rings).toEqual(['work']);
  expect(engine.exchanges).toHaveLength(2);
});

it('keeps a bell that its next exchange answers', async () => {
  const engine = await sleeping();
  engine.blocks[0]!.open('work');
  await until(() => engine.exchanges.length === 2 && engine.blocks.length === 2);
  engine.blocks[1]!.open('work');
  await until(() => engine.blocks.length === 3);
  engine.exchanges[1]!.answer.open(claimed());
  await until(() => engine.exchanges.length === 3);
  expect(engine.exchanges[2]!.call.want).toBe(1);
  expect(engine.rings).toEqual([]);
});

it('passes a bell on and does not wait while its slots are full', async () => {
  const engine = await sleeping();
  engine.blocks[0]!.open('work');
  await until(() => engine.exchanges.length === 2 && engine.blocks.length === 2);
  engine.exchanges[1]!.answer.open(claimed('a'));
  await until(async () => engine.exchanges[1]!.answer.isOpen);
  await new Promise(setImmediate);
  engine.blocks[1]!.open('work');
  await until(() => engine.rings.length === 1);
  await new Promise(setImmediate);
  expect(engine.blocks).toHaveLength(2);
  expect(engine.exchanges).toHaveLength(2);
});

it('passes on a bell that may be for a suspect while it holds one, but not the one it rings itself', async () => {
  // Within the time in which it rings for no other worker, however long the test takes.
  vi.useFakeTimers({ toFake: ['performance'] });
  atEnd(() => vi.useRealTimers());
  const engine = await sleeping(3);
  const wakes = async (blocks: number, answer: ExchangeAnswer) => {
    engine.blocks[blocks - 1]!.open('work');
    await until(() => engine.exchanges.length === blocks + 1);
    const { call, answer: latched } = engine.exchanges[blocks]!;
    latched.open(answer);
    await until(() => engine.blocks.length === blocks + 1);
    return call.maySuspect;
  };
  expect(await wakes(1, claimed('a', ['a']))).toBe(true);
  expect(engine.rings).toEqual([]);
  expect(await wakes(2, claimed())).toBe(false);
  expect(engine.rings).toEqual(['work']);
  expect(await wakes(3, claimed())).toBe(false);
  expect(engine.rings).toEqual(['work']);
});
