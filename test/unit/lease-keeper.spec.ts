import { expect, it } from 'vitest';
import type { BeatAnswer, HeartbeatPlan, QueueEngine } from '#lib/contract/engine.js';
import { LeaseKeeper } from '#lib/worker/lease-keeper.js';
import { atEnd } from '../support/cleanup.js';
import { until } from '../support/wait.js';

const LEASE = { leaseMs: 100, maxBlockMs: 60_000 };

it('renews leases by a timer until the heartbeats of the thread arrive, and by the thread from then on', async () => {
  let beats = 0;
  let plan!: HeartbeatPlan;
  const alive: BeatAnswer = { kind: 'alive', held: 1, exchanges: 1, cancels: new Map() };
  const engine = {
    beat: async () => {
      beats += 1;
      return alive;
    },
    openHeartbeat(given: HeartbeatPlan) {
      plan = given;
      return { follow() {}, holds() {}, leave() {}, show() {}, close: async () => undefined };
    },
  } as unknown as QueueEngine;
  const keeper = new LeaseKeeper(engine, LEASE, 25);
  atEnd(() => keeper.stop());
  const heard: string[] = [];
  keeper.add('q', 'w', LEASE, (worker) => heard.push(worker));
  keeper.holds('q', true);
  await until(() => beats >= 3, { what: 'beats of the timer' });
  expect(heard).toContain('w');
  plan.onReady();
  const before = beats;
  // As long as four beats of the timer took.
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(beats).toBe(before);
});
