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

it('begins again with shorter intervals when a queue with a shorter lease is added', async () => {
  const said: string[] = [];
  const plans: HeartbeatPlan[] = [];
  const engine = {
    beat: () => new Promise(() => {}),
    openHeartbeat(plan: HeartbeatPlan) {
      const say = (text: string) => said.push(`${plan.beatMs}: ${text}`);
      plans.push(plan);
      return {
        follow: (queue: string, worker: string) => say(`follow ${queue} ${worker}`),
        holds: (queue: string, any: boolean) => say(`${queue} holds ${any}`),
        leave: () => undefined,
        show: ({ id }: { id: string }) => say(`show ${id}`),
        close: async () => void say('close'),
      };
    },
  } as unknown as QueueEngine;
  const keeper = new LeaseKeeper(engine, LEASE, 25);
  keeper.add('q', 'w', LEASE, () => undefined);
  keeper.holds('q', true);
  keeper.show({ id: 'p' } as never);
  said.length = 0;
  keeper.add('r', 'x', { ...LEASE, leaseMs: 40 }, () => undefined);
  keeper.add('s', 'y', LEASE, () => undefined);
  expect(said).toEqual([
    '25: close',
    '10: follow q w',
    '10: q holds true',
    '10: show p',
    '10: follow r x',
    '10: follow s y',
  ]);
  await keeper.stop();
  expect(said.slice(6)).toEqual(['10: close']);
});
