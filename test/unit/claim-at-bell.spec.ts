import { expect, it } from 'vitest';
import { latch, until } from '../support/wait.js';
import { claimed, given, idle, RUNG, SlowEngine, turns } from './slow-engine.js';

it('leaves its next call at the bell and runs what it claims there, without asking', async () => {
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

it('makes it now, with the same number, when it is asked for more; the bell that rings later is answered by another', async () => {
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

it('makes it again with the same number where more is to be done than to claim', async () => {
  const { engine } = await idle();
  await until(() => engine.left.length === 1);
  engine.left[0]!.end.open(RUNG);
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call).toEqual(engine.left[0]!.call);
  engine.exchanges[1]!.answer.open(claimed());
  await until(() => engine.left.length === 2);
  expect([engine.left[1]!.call.seq, engine.rings.length]).toEqual([3, 0]);
});

it('asks for times too where the bell told of one, beside the jobs', async () => {
  const gate = latch('the end of the job');
  const { engine } = await idle({ run: () => gate.promise });
  await until(() => engine.left.length === 1);
  engine.left[0]!.end.open({ ...given('slow'), isOfTime: true });
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call).toMatchObject({ seq: 3, want: 9, settled: [] });
  gate.open();
});

it('asks for times too where the bell rang and nothing was there, but not where nothing rang', async () => {
  const { engine } = await idle();
  await until(() => engine.left.length === 1);
  engine.left[0]!.end.open(given());
  await until(() => engine.left.length === 2);
  expect(engine.exchanges).toHaveLength(1);
  engine.left[1]!.end.open({ ...given(), rung: true });
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call).toMatchObject({ want: 10, settled: [] });
});

it('runs what it claimed once, where it was claimed at the bell and the answer to its repetition came first', async () => {
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

it('makes it again with the same number when the connection of the bell breaks', async () => {
  const { engine } = await idle();
  await until(() => engine.left.length === 1);
  engine.left[0]!.end.open(new Error('the connection broke'));
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call).toEqual(engine.left[0]!.call);
});

it.each(['pause', 'stopClaiming'] as const)(
  'takes it back when it is to claim nothing more: %s',
  async (end) => {
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
  },
);

it('leaves none while it holds jobs, and does again once it has been idle for a moment', async () => {
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

it('leaves none beside other queues, at whose bells it would wait too', async () => {
  const { engine, poolOf } = await idle();
  await until(() => engine.left.length === 1);
  poolOf('other').start();
  await until(() => engine.exchanges.length === 2);
  engine.exchanges[1]!.answer.open(claimed());
  await until(() => engine.blocks.length === 1);
  expect(engine.left).toHaveLength(1);
});

it('sleeps without it where the store cannot keep one now', async () => {
  const engine = new SlowEngine();
  engine.cannot = true;
  await idle({ engine });
  await until(() => engine.blocks.length === 1);
  engine.blocks[0]!.open('work');
  await until(() => engine.exchanges.length === 2);
  expect(engine.exchanges[1]!.call.seq).toBe(2);
});
