import { expect, it } from 'vitest';
import type { ClaimAnswer, ExchangeCall } from '#lib/contract/engine.js';
import { Slots } from '#lib/worker/slots.js';
import { latch, until } from '../support/wait.js';
import { claimed, given, idle, RUNG, turns, type SlowEngine } from './slow-engine.js';

/** A pool that sleeps, with its call left at the bell. */
async function asleep(more: Parameters<typeof idle>[0] = {}) {
  const all = await idle(more);
  await until(() => all.engine.left.length === 1);
  return all;
}

function answer(...ids: string[]): ClaimAnswer {
  return { ...given(...ids).answer!, held: null };
}

/** As the engine does where this process adds a job. */
function begin(engine: SlowEngine): ExchangeCall | null {
  return engine.claimer!.begin();
}

it('claims in place of the call it has left at the bell, and starts before the add has ended', async () => {
  const runs: string[] = [];
  const { engine } = await asleep({ run: ({ id }) => void runs.push(id) });
  const call = begin(engine)!;
  expect(call).toEqual(engine.left[0]!.call);
  engine.claimer!.end(call, answer('a'));
  expect(runs).toEqual(['a']);
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call).toMatchObject({ seq: 3, settled: [{ id: 'a' }] });
});

it('sleeps on behind it, and answers the bell by an exchange where what was left there is void', async () => {
  const { engine } = await asleep();
  engine.claimer!.end(begin(engine)!, answer('a'));
  await until(() => engine.exchanges.length === 2);
  engine.exchanges[1]!.answer.open(claimed());
  await turns();
  expect([engine.left.length, engine.interrupts]).toEqual([1, 0]);
  engine.left[0]!.end.open(RUNG);
  await until(() => engine.exchanges.length === 3);
  expect(engine.exchanges[2]!.call).toMatchObject({ seq: 4, want: 10 });
  expect(engine.rings).toEqual([]);
});

it('begins its sleep anew only when no job has come for a moment', async () => {
  const { engine } = await asleep();
  for (let n = 0; n < 20; n++) {
    let call = begin(engine);
    // No timer comes between these, so it is never idle for long.
    while (!call) {
      await Promise.resolve();
      call = begin(engine);
    }
    engine.claimer!.end(call, answer(`job-${n}`));
    await until(() => engine.exchanges.length === n + 2);
    engine.exchanges.at(-1)!.answer.open(claimed());
  }
  await until(() => engine.left.length === 2);
  expect(engine.interrupts).toBe(1);
  expect(engine.left[1]!.call.seq).toBe(42);
});

it('is none while a job runs, while an answer is on its way, or while the pool claims nothing', async () => {
  const gate = latch('the end of the job');
  const { engine, pool } = await asleep({ run: () => gate.promise });
  const call = begin(engine)!;
  expect(begin(engine)).toBeNull();
  engine.claimer!.end(call, answer('slow'));
  expect(begin(engine)).toBeNull();
  gate.open();
  await until(() => engine.exchanges.length === 2);
  expect(begin(engine)).toBeNull();
  engine.exchanges[1]!.answer.open(claimed());
  await until(() => engine.left.length === 2);
  pool.pause();
  expect(begin(engine)).toBeNull();
  engine.exchanges[2]!.answer.open(claimed());
  await turns();
  expect(begin(engine)).toBeNull();
});

it('is made again by an exchange of the same number where it was refused or nobody knows', async () => {
  const runs: string[] = [];
  const { engine } = await asleep({ run: ({ id }) => void runs.push(id) });
  const call = begin(engine)!;
  engine.claimer!.end(call, null);
  expect(engine.exchanges[1]!.call).toEqual(call);
  engine.exchanges[1]!.answer.open(claimed('a'));
  await until(() => runs.length === 1);
  await until(() => engine.exchanges.length === 3);
  expect(engine.exchanges[2]!.call).toMatchObject({ seq: 3, settled: [{ id: 'a' }] });
});

it('is not tried again behind a refusal until something was claimed', async () => {
  const { engine } = await asleep();
  engine.claimer!.end(begin(engine)!, null);
  engine.exchanges[1]!.answer.open(claimed());
  await turns();
  expect(begin(engine)).toBeNull();
  engine.left[0]!.end.open(given());
  await until(() => engine.left.length === 2);
  expect(begin(engine)).toBeNull();
  engine.left[1]!.end.open(given('a'));
  await until(() => engine.exchanges.length === 3);
  engine.exchanges[2]!.answer.open(claimed());
  await until(() => engine.left.length === 3);
  expect(begin(engine)).not.toBeNull();
});

it('gives back what comes when the pool has stopped meanwhile', async () => {
  const runs: string[] = [];
  const { engine, pool } = await asleep({ run: ({ id }) => void runs.push(id) });
  const { claimer } = engine;
  const call = begin(engine)!;
  pool.stopClaiming();
  expect(engine.claimer).toBeNull();
  claimer!.end(call, answer('a'));
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call).toMatchObject({
    want: 0,
    settled: [{ id: 'a', outcome: { kind: 'released' } }],
  });
  expect(runs).toEqual([]);
});

it('is there for each of several queues, but not for those that share slots, which ask in turn', async () => {
  const { engine, poolOf } = await asleep();
  const first = engine.claimer;
  poolOf('other').start();
  expect(engine.claimer).not.toBe(first);
  engine.claimer = null;
  const slots = new Slots(10);
  const pools = [poolOf('one', slots), poolOf('two', slots)];
  for (const pool of pools) pool.start();
  expect(engine.claimer).toBeNull();
});
