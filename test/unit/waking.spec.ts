import { expect, it, vi } from 'vitest';
import type {
  ClaimedJob,
  ExchangeAnswer,
  ExchangeCall,
  HeartbeatPlan,
  QueueEngine,
} from '#lib/contract/engine.js';
import { encodeBody } from '#lib/job/job-record.js';
import { resolveModuleOptions, resolveQueueOptions } from '#lib/options/module-options.js';
import { Doorbell } from '#lib/worker/doorbell.js';
import { LeaseKeeper } from '#lib/worker/lease-keeper.js';
import { Slots } from '#lib/worker/slots.js';
import { WorkerPool } from '#lib/worker/worker-pool.js';
import { atEnd } from '../support/cleanup.js';
import { latch, until, type Latch } from '../support/wait.js';

/** An engine whose answers come when the test says so. */
class SlowEngine {
  readonly exchanges: { readonly call: ExchangeCall; readonly answer: Latch<ExchangeAnswer> }[] = [];
  readonly blocks: Latch<string | null>[] = [];
  readonly rings: string[] = [];

  exchange(_: string, call: ExchangeCall): Promise<ExchangeAnswer> {
    const answer = latch<ExchangeAnswer>();
    this.exchanges.push({ call, answer });
    return answer.promise;
  }

  awaitBell(): Promise<string | null> {
    const block = latch<string | null>();
    this.blocks.push(block);
    return block.promise;
  }

  interruptBell(): void {
    this.blocks.at(-1)?.open(null);
  }

  async ring(queue: string): Promise<void> {
    this.rings.push(queue);
  }

  openHeartbeat = ({ onReady }: HeartbeatPlan) => {
    onReady();
    return { follow() {}, holds() {}, leave() {}, close: async () => undefined };
  };
  release = async () => ({ lost: [] });
  look = async () => [];
  now = () => Date.now();
}

function claimed(...ids: string[]): ExchangeAnswer {
  return claimedJobs(ids.map((id) => ({ id, stalls: 0 })));
}

function claimedJobs(jobs: readonly Pick<ClaimedJob, 'id' | 'stalls'>[]): ExchangeAnswer {
  const job = ({ id, stalls }: Pick<ClaimedJob, 'id' | 'stalls'>): ClaimedJob => ({
    id,
    body: encodeBody('job', 1, {}, '1'),
    failed: 0,
    stalls,
  });
  return {
    kind: 'exchanged',
    lost: [],
    claimed: jobs.map(job),
    supply: 'empty',
    dueInMs: null,
    leaseInMs: null,
    scheduleInMs: null,
    isCut: false,
    held: jobs.length,
  };
}

/** A pool whose jobs do not end, which has found its line empty and sleeps. */
async function sleeping(concurrency = 1): Promise<SlowEngine> {
  const engine = new SlowEngine();
  const queueEngine = engine as unknown as QueueEngine;
  const doorbell = new Doorbell(queueEngine);
  const gate = latch('the end of the job');
  const pool = new WorkerPool({
    engine: queueEngine,
    queue: resolveQueueOptions({ name: 'work' }, resolveModuleOptions()),
    slots: new Slots(concurrency),
    find: () => ({ label: 'Test.job', run: () => gate.promise }),
    leaseMs: 8000,
    doorbell,
    leases: new LeaseKeeper(queueEngine, 8000, 60_000),
    heard: () => undefined,
  });
  atEnd(async () => {
    gate.open();
    const answerAll = setInterval(() => engine.exchanges.forEach(({ answer }) => answer.open(claimed())), 1);
    await pool.drain({ timeoutMs: 1000, graceMs: 0 });
    clearInterval(answerAll);
    const stopped = doorbell.stop();
    engine.interruptBell();
    await stopped;
  });
  pool.start();
  await until(() => engine.exchanges.length === 1);
  engine.exchanges[0]!.answer.open(claimed());
  await until(() => engine.blocks.length === 1);
  return engine;
}

it('passes the bell on that woke it in vain, since its claim on the way had filled the last slot', async () => {
  const engine = await sleeping();
  engine.blocks[0]!.open('work');
  await until(() => engine.exchanges.length === 2 && engine.blocks.length === 2);
  // The claim rings for what it leaves, and that bell comes back sooner than its answer.
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

it('passes a bell on and waits no more while its slots are full', async () => {
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

it('passes on a bell that may tell of a suspect while it holds one, but not the one it rings itself', async () => {
  // Within the time in which it does not pass another one on, however long the test takes.
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
  expect(await wakes(1, claimedJobs([{ id: 'a', stalls: 2 }]))).toBe(true);
  expect(engine.rings).toEqual([]);
  expect(await wakes(2, claimed())).toBe(false);
  expect(engine.rings).toEqual(['work']);
  expect(await wakes(3, claimed())).toBe(false);
  expect(engine.rings).toEqual(['work']);
});
