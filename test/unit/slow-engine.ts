import type {
  ExchangeAnswer,
  ExchangeCall,
  HeartbeatPlan,
  QueueEngine,
  RungClaim,
} from '#lib/contract/engine.js';
import { encodeBody } from '#lib/job/job-record.js';
import { resolveModuleOptions, resolveQueueOptions } from '#lib/options/module-options.js';
import { Doorbell } from '#lib/worker/doorbell.js';
import { LeaseKeeper } from '#lib/worker/lease-keeper.js';
import { Slots } from '#lib/worker/slots.js';
import { WorkerPool } from '#lib/worker/worker-pool.js';
import { atEnd } from '../support/cleanup.js';
import { latch, until, type Latch } from '../support/wait.js';

/** An engine whose answers come when the test says so, and whose exchanges can wait at a bell. */
export class SlowEngine {
  readonly exchanges: { readonly call: ExchangeCall; readonly answer: Latch<ExchangeAnswer> }[] = [];
  readonly left: { readonly call: ExchangeCall; readonly end: Latch<RungClaim | Error> }[] = [];
  readonly blocks: Latch<string | null>[] = [];
  readonly rings: string[] = [];
  interrupts = 0;
  /** Whether an exchange can wait at the bell. */
  cannot = false;
  plan: HeartbeatPlan | undefined;

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

  /** Answers all open exchanges with no jobs. */
  answerAll(): void {
    for (const { answer } of this.exchanges) if (!answer.isOpen) answer.open(claimed());
  }

  openHeartbeat = (plan: HeartbeatPlan) => {
    this.plan = plan;
    plan.onReady();
    return { follow() {}, holds() {}, leave() {}, close: async () => undefined };
  };
  adopt = async () => ({ unknown: [], lost: [], buried: [] });
  release = async () => ({ lost: [] });
  promote = async () => ({ promoted: 0, dueInMs: null });
  look = async () => [];
  now = () => Date.now();
}

/** An engine whose exchanges cannot wait at a bell, as the memory engine. */
export const withoutBell = (): SlowEngine =>
  Object.assign(new SlowEngine(), { claimAtBell: undefined }) as never;

/** @param suspects ids of those that have stalled twice. */
export function claimed(
  ids: string | readonly string[] = [],
  suspects: readonly string[] = [],
): ExchangeAnswer {
  const body = encodeBody('job', 1, {}, '1');
  const jobs = [ids].flat().map((id) => ({ id, body, failed: 0, stalls: suspects.includes(id) ? 2 : 0 }));
  return {
    kind: 'exchanged',
    lost: [],
    claimed: jobs,
    claimedAt: 0,
    supply: 'empty',
    dueInMs: null,
    leaseInMs: null,
    scheduleInMs: null,
    isCut: false,
    held: jobs.length,
  };
}

/** The outcome of a call at the bell. The bell rings if jobs were claimed. */
export function given(...ids: string[]): RungClaim {
  const { claimed: jobs, held } = claimed(ids) as Extract<ExchangeAnswer, { kind: 'exchanged' }>;
  return {
    rung: ids.length > 0,
    isOfTime: false,
    answer: { kind: 'claimed', claimed: jobs, isCut: false, held },
  };
}

export const RUNG = { rung: true, isOfTime: false, answer: null };

type RunJob = (job: { readonly id: string }) => unknown;

/** A pool that has found its line empty. */
export async function idle({
  run = (() => undefined) as RunJob,
  engine = new SlowEngine(),
  concurrency = 10,
  shutdown = { timeout: 1000, grace: 0 },
} = {}) {
  const queueEngine = engine as unknown as QueueEngine;
  const doorbell = new Doorbell(queueEngine);
  const poolOf = (name: string, slots = new Slots(concurrency)) => {
    const queue = resolveQueueOptions({ name, shutdown }, resolveModuleOptions());
    const pool = new WorkerPool({
      engine: queueEngine,
      queue,
      slots,
      find: () => ({ label: 'Test.job', run }),
      names: () => [],
      doorbell,
      leases: new LeaseKeeper(queueEngine, queue.lease, 2_000),
      heard: () => undefined,
    });
    atEnd(async () => {
      const answerAll = setInterval(() => engine.answerAll(), 1);
      await pool.drain();
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

/** All that was about to happen in this process has happened. */
export async function turns(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise(setImmediate);
}
