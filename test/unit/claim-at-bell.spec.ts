import { expect, it } from 'vitest';
import type { ExchangeAnswer, ExchangeCall, QueueEngine, RungClaim } from '#lib/engine/engine.js';
import { encodeBody } from '#lib/job/job-record.js';
import { resolveModuleOptions, resolveQueueOptions } from '#lib/options/module-options.js';
import { Doorbell } from '#lib/worker/doorbell.js';
import { LeaseKeeper } from '#lib/worker/lease-keeper.js';
import { Slots } from '#lib/worker/slots.js';
import { WorkerPool } from '#lib/worker/worker-pool.js';
import { atEnd } from '../support/cleanup.js';
import { latch, until, type Latch } from '../support/wait.js';

/** An engine whose answers come when the test says so, and at whose bell an exchange can be left. */
class SlowEngine {
  readonly exchanges: { readonly call: ExchangeCall; readonly answer: Latch<ExchangeAnswer> }[] = [];
  readonly left: { readonly call: ExchangeCall; readonly end: Latch<RungClaim | Error> }[] = [];
  readonly blocks: Latch<string | null>[] = [];
  readonly rings: string[] = [];
  interrupts = 0;
  cannot = false;

  exchange(_: string, call: ExchangeCall): Promise<ExchangeAnswer> {
    const answer = latch<ExchangeAnswer>();
    this.exchanges.push({ call, answer });
    return answer.promise;
  }

  claimAtBell(_: string, call: ExchangeCall): Promise<RungClaim> | null {
    if (this.cannot) return null;
    const end = latch<RungClaim | Error>();
    this.left.push({ call, end });
    return end.promise.then((ended) => {
      if (ended instanceof Error) throw ended;
      return ended;
    });
  }

  awaitBell(): Promise<string | null> {
    const block = latch<string | null>();
    this.blocks.push(block);
    return block.promise;
  }

  interruptBell(): void {
    this.interrupts += 1;
    this.blocks.at(-1)?.open(null);
    this.left.at(-1)?.end.open(given());
  }

  async ring(queue: string): Promise<void> {
    this.rings.push(queue);
  }

  openHeartbeat = () => ({ follow() {}, holds() {}, leave() {}, close: async () => undefined });
  release = async () => ({ lost: [] });
  promote = async () => ({ promoted: 0, dueInMs: null });
  look = async () => [];
  now = () => Date.now();
}

function claimed(...ids: string[]): ExchangeAnswer {
  return {
    kind: 'exchanged',
    lost: [],
    claimed: ids.map((id) => ({ id, body: encodeBody('job', 1, {}, '1'), failed: 0, stalls: 0 })),
    paused: false,
    dueInMs: null,
    leaseInMs: null,
    scheduleInMs: null,
    held: ids.length,
  };
}

/** What became of a call at the bell, which was rung where jobs were claimed. */
function given(...ids: string[]): RungClaim {
  const { claimed: jobs, held } = claimed(...ids) as Extract<ExchangeAnswer, { kind: 'exchanged' }>;
  return { rung: ids.length > 0, isOfTime: false, answer: { kind: 'claimed', claimed: jobs, held } };
}

const RUNG = { rung: true, isOfTime: false, answer: null };

type RunJob = (job: { readonly id: string }) => unknown;

/** A pool that has found its line empty. */
async function idle({ run = (() => undefined) as RunJob, engine = new SlowEngine() } = {}) {
  const queueEngine = engine as unknown as QueueEngine;
  const doorbell = new Doorbell(queueEngine);
  const poolOf = (name: string, slots = new Slots(10)) => {
    const pool = new WorkerPool({
      engine: queueEngine,
      queue: resolveQueueOptions({ name }, resolveModuleOptions()),
      slots,
      find: () => ({ label: 'Test.job', run }),
      leaseMs: 8000,
      doorbell,
      leases: new LeaseKeeper(queueEngine, 8000, 60_000),
      heard: () => undefined,
    });
    atEnd(async () => {
      const answerAll = setInterval(() => {
        engine.exchanges.forEach(({ answer }) => answer.open(claimed()));
      }, 1);
      await pool.drain({ timeoutMs: 1000, graceMs: 0 });
      clearInterval(answerAll);
    });
    return pool;
  };
  atEnd(async () => {
    const stopped = doorbell.stop();
    engine.interruptBell();
    await stopped;
  });
  const pool = poolOf('work');
  pool.start();
  await until(() => engine.exchanges.length === 1);
  engine.exchanges[0]!.answer.open(claimed());
  return { engine, pool, poolOf };
}

/** Whatever was about to happen in this process has happened. */
async function turns(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise(setImmediate);
}

it('leaves its next call at the bell and runs what it claims there, without asking', async () => {
  const runs: string[] = [];
  const { engine } = await idle({ run: (job: { id: string }) => void runs.push(job.id) });
  await until(() => engine.left.length === 1);
  expect(engine.left[0]!.call).toMatchObject({ seq: 2, want: 10, settled: [], maySuspect: true });
  engine.left[0]!.end.open(given('a'));
  await until(() => engine.exchanges.length === 2);
  expect(runs).toEqual(['a']);
  expect(engine.exchanges[1]!.call).toMatchObject({ seq: 3, settled: [{ id: 'a' }] });
  // What it says then asks for more too, so nothing waits at the bell until it is answered.
  await turns();
  expect([engine.left.length, engine.blocks.length]).toEqual([1, 0]);
  engine.exchanges[1]!.answer.open(claimed());
  await until(() => engine.left.length === 2);
  expect(engine.left[1]!.call.seq).toBe(4);
});

it('makes it now, with the same number, when it is asked for more; the bell that rings later is answered by another', async () => {
  const { engine, pool } = await idle();
  await until(() => engine.left.length === 1);
  pool.ask();
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
  pool.ask();
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
    // It has not taken what the bell told of: that is for others.
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
