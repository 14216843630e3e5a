import type { ExchangeCall, QueueEngine } from '#lib/contract/engine.js';
import type { ShareCall } from '#lib/contract/limit-verbs.js';
import { QUEUE_ENGINE } from '#lib/decorators/metadata.js';
import { bootQueue, type Logs, type QueueApp } from '../support/queue-app.js';
import type { TestRedis } from '../support/redis.js';
import { optionsOf, runnerOf, type Witness } from './handlers.js';
import type { AppPlan, Plan } from './plan.js';
import type { Watch } from './watch.js';

/** The settings that all applications of a run share. */
export interface Stage {
  readonly redis: Pick<TestRedis, 'url' | 'prefix' | 'keys'>;
  readonly plan: Plan;
  readonly watch: Watch;
  /** Learns of the runs, and tells the watch. */
  readonly witness: Witness & { outOfOrder(): void };
  readonly logs: Logs;
}

/** A worker process, or an application that is one. */
export interface Host {
  /** Null in another process. */
  readonly app: QueueApp | null;
  readonly isUp: Promise<void>;
  /** Ends it in the middle of a run: in good order, or not. */
  end(): Promise<void>;
  /** Ends it in good order. */
  close(): Promise<void>;
}

/** @param app null: an application that only adds jobs. */
export async function bootSoakApp(
  { redis, plan, watch, witness, logs }: Stage,
  app: AppPlan | null,
): Promise<QueueApp> {
  const booted = await bootQueue(redis, { ...optionsOf(plan, witness, app), watch: false, logs });
  const engine = booted.get<QueueEngine>(QUEUE_ENGINE);
  const exchange = engine.exchange.bind(engine);
  const share = engine.limits.share.bind(engine.limits);
  const askedAt = new Map<string, number>();
  Object.assign(engine.limits, {
    share: (queue: string, call: ShareCall) => {
      if (call.want > 0) askedAt.set(call.worker, performance.now());
      return share(queue, call);
    },
  });
  Object.assign(engine, {
    exchange: async (queue: string, call: ExchangeCall) => {
      watch.exchanges(queue, performance.now());
      const answer = await exchange(queue, call);
      const ms = performance.now() - (askedAt.get(call.worker) ?? Infinity);
      if (call.want > 0) watch.longestClaimMs = Math.max(watch.longestClaimMs, ms);
      return answer;
    },
  });
  return booted;
}

export async function hostHere(stage: Stage, plan: AppPlan): Promise<Host> {
  const app = await bootSoakApp(stage, plan);
  return { app, isUp: Promise.resolve(), end: app.close, close: app.close };
}

/** Runs the jobs of one more queue in an application. */
export function workOn({ witness }: Stage, { runtime }: QueueApp, queue: string, concurrency: number) {
  return runtime.work(queue, runnerOf(witness), { concurrency });
}
