import { expect, it } from 'vitest';
import { latch, until } from '../support/wait.js';
import { claimed, given, idle, RUNG, SlowEngine, turns } from './slow-engine.js';

it('sends its next claim ahead to the bell and runs the jobs that it claims, without another call', async () => {
  const runs: string[] = [];
  const { engine } = await idle({ run: (job: { id: string }) => void runs.push(job.id) });
  await until(() => engine.left.length === 1);
  expect(engine.left[0]!.call).toMatchObject({ seq: 2, want: 10, settled: [], maySuspect: true });
  engine.left[0]!.end.open(given('a'));
  await until(() => engine.exchanges.length === 2);
  expect(runs).toEqual(['a']);
  expect(engine.exchanges[1]!.call).toMatchObject({ seq: 3, settled: [{ id: 'a' }] });
  // Its answer asks for more too, so no call waits at the bell until it is answered.
  await turns();
  expect([engine.left.length, engine.blocks.length]).toEqual([1, 0]);
  engine.exchanges[1]!.answer.open(claimed());
  await until(() => engine.left.length === 2);
  expect(engine.left[1]!.call.seq).toBe(4);
});

it('makes the claim at once, with the same number, when it needs more; the next claim answers a later bell', async () => {
  const { engine, pool } = await idle();
  await until(() => engine.left.length === 1);
  pool.claimer.exchangeSoon();
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call).toEqual(engine.left[0]!.call);
  engine.exchanges[1]!.answer.open(claimed());
  await turns();
  engine.left[0]!.end.open(RUNG);
  await until(() => engine.exchanges.length === 3);
  expect(engine.exchanges[2]!.call.seq).toBe(3);
  expect(engine.rings).toEqual([]);
});

it('repeats it with the same number if there is more to do than to claim', async () => {
  const { engine } = await idle();
  await until(() => engine.left.length === 1);
  engine.left[0]!.end.open(RUNG);
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call).toEqual(engine.left[0]!.call);
  engine.exchanges[1]!.answer.open(claimed());
  await until(() => engine.left.length === 2);
  expect([engine.left[1]!.call.seq, engine.rings.length]).toEqual([3, 0]);
});

it('also asks for times if the bell rang for one, besides the jobs', async () => {
  const gate = latch('the end of the job');
  const { engine } = await idle({ run: () => gate.promise });
  await until(() => engine.left.length === 1);
  engine.left[0]!.end.open({ ...given('slow'), isOfTime: true });
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call).toMatchObject({ seq: 3, want: 9, settled: [] });
  gate.open();
});

it('also asks for times if the bell rang and there was no job, but not if it did not ring', async () => {
  const { engine } = await idle();
  await until(() => engine.left.length === 1);
  engine.left[0]!.end.open(given());
  await until(() => engine.left.length === 2);
  expect(engine.exchanges).toHaveLength(1);
  engine.left[1]!.end.open({ ...given(), rung: true });
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call).toMatchObject({ want: 10, settled: [] });
});

it('runs claimed jobs once if they were claimed at the bell and the reply to the repetition came first', async () => {
  const runs: string[] = [];
  const { engine, pool } = await idle({ run: (job: { id: string }) => void runs.push(job.id) });
  await until(() => engine.left.length === 1);
  pool.claimer.exchangeSoon();
  await until(() => engine.exchanges.length === 2);
  engine.exchanges[1]!.answer.open(claimed('a'));
  await until(() => engine.exchanges.length === 3);
  engine.left[0]!.end.open(given('a'));
  engine.exchanges[2]!.answer.open(claimed());
  await turns();
  expect(runs).toEqual(['a']);
});

it('repeats it with the same number when the connection of the bell breaks', async () => {
  const { engine } = await idle();
  await until(() => engine.left.length === 1);
  engine.left[0]!.end.open(new Error('the connection broke'));
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call).toEqual(engine.left[0]!.call);
});

it.each(['pause', 'stopClaiming'] as const)('cancels it when it must claim no more: %s', async (end) => {
  const { engine, pool } = await idle();
  await until(() => engine.left.length === 1);
  pool[end]();
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call).toEqual({ ...engine.left[0]!.call, want: 0 });
  engine.exchanges[1]!.answer.open(claimed());
  await turns();
  // It has not taken the jobs of that bell. Those are for other workers.
  engine.left[0]!.end.open(RUNG);
  await until(() => engine.rings.length === 1);
  expect(engine.exchanges).toHaveLength(2);
});

it('sends none ahead while it holds jobs, and does so again after it was idle for a moment', async () => {
  const gate = latch('the end of the job');
  const { engine } = await idle({ run: () => gate.promise });
  await until(() => engine.left.length === 1);
  engine.left[0]!.end.open(given('slow'));
  await until(() => engine.blocks.length === 1);
  expect(engine.left).toHaveLength(1);
  gate.open();
  await until(() => engine.exchanges.length === 2);
  expect(engine.interrupts).toBe(0);
  engine.exchanges[1]!.answer.open(claimed());
  await until(() => engine.left.length === 2);
  expect(engine.interrupts).toBe(1);
});

it('sends none ahead with other queues, because it would wait at their bells too', async () => {
  const { engine, poolOf } = await idle();
  await until(() => engine.left.length === 1);
  poolOf('other').start();
  await until(() => engine.exchanges.length === 2);
  engine.exchanges[1]!.answer.open(claimed());
  await until(() => engine.blocks.length === 1);
  expect(engine.left).toHaveLength(1);
});

it('sleeps without it if the store cannot take one now', async () => {
  const engine = new SlowEngine();
  engine.cannot = true;
  await idle({ engine });
  await until(() => engine.blocks.length === 1);
  engine.blocks[0]!.open('work');
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call.seq).toBe(2);
});
