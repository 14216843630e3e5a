import { expect, it } from 'vitest';
import type {
  BeatAnswer,
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
import { latch, until } from '../support/wait.js';

/** Gives out three jobs at once, and then none; beats when the test says so. */
class FakeEngine {
  readonly calls: ExchangeCall[] = [];
  readonly block = latch<null>();
  plan: HeartbeatPlan | undefined;

  async exchange(_: string, call: ExchangeCall): Promise<ExchangeAnswer> {
    this.calls.push(call);
    const ids = this.calls.length === 1 ? ['a', 'b', 'c'] : [];
    return {
      kind: 'exchanged',
      lost: [],
      claimed: ids.map((id) => ({
        id,
        body: encodeBody('job', 1, {}, '1'),
        failed: 0,
        stalls: id === 'b' ? 2 : 0,
      })),
      supply: 'empty',
      dueInMs: null,
      leaseInMs: null,
      scheduleInMs: null,
      isCut: false,
      held: 0,
    };
  }

  openHeartbeat(plan: HeartbeatPlan) {
    this.plan = plan;
    plan.onReady();
    return { follow() {}, holds() {}, leave() {}, close: async () => undefined };
  }

  awaitBell = () => this.block.promise;
  interruptBell = () => this.block.open(null);
  adopt = async () => ({ unknown: [], lost: [], buried: [] });
  release = async () => ({ lost: [] });
  look = async () => [];
  now = () => Date.now();
}

it('does not start a job that was cancelled while it waited in the hands of its worker, and gives it back', async () => {
  const engine = new FakeEngine();
  const queueEngine = engine as unknown as QueueEngine;
  const doorbell = new Doorbell(queueEngine);
  const ran: string[] = [];
  const maySuspect: boolean[] = [];
  // Right behind the start of the first, before the worker gives back what it has had in its hands for long.
  const beat = () => {
    const answer: BeatAnswer = {
      kind: 'alive',
      held: 3,
      exchanges: 1,
      cancels: new Map([['b', 'not wanted']]),
    };
    maySuspect.push(pool.maySuspect());
    engine.plan!.onBeat('work', pool.worker, answer);
    maySuspect.push(pool.maySuspect());
    first.open();
  };
  const first = latch('the end of the first job');
  const pool = new WorkerPool({
    engine: queueEngine,
    queue: resolveQueueOptions({ name: 'work' }, resolveModuleOptions()),
    slots: new Slots(1),
    find: () => ({
      label: 'Test.job',
      run: ({ id }) => {
        ran.push(id);
        if (id !== 'a') return undefined;
        queueMicrotask(beat);
        return first.promise;
      },
    }),
    leaseMs: 8000,
    doorbell,
    leases: new LeaseKeeper(queueEngine, 8000, 60_000),
    heard: () => undefined,
  });
  atEnd(async () => {
    first.open();
    await pool.drain({ timeoutMs: 1000, graceMs: 0 });
    await doorbell.stop();
  });
  pool.start();
  const settled = () => engine.calls.flatMap((call) => call.settled);
  await until(() => settled().length === 3);
  const outcomes = new Map(settled().map(({ id, outcome }) => [id, outcome.kind]));
  expect(outcomes.get('b')).toBe('released');
  expect(outcomes.get('a')).toBe('completed');
  expect(ran).not.toContain('b');
  expect(maySuspect).toEqual([false, true]);
});
