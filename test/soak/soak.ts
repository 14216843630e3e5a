import { AUDITED } from '#lib/contract/audit-facts.js';
import type { Queue } from '#lib/producer/queue.js';
import { Logs, type QueueApp } from '../support/queue-app.js';
import { until } from '../support/wait.js';
import { Acts } from './acts.js';
import { GROUPS, SCHEDULES, type Plan, type QueuePlan } from './plan.js';
import { forking } from './forked.js';
import { Replay } from './replay.js';
import { bootSoakApp, hostHere, type Stage } from './soak-app.js';
import { Watch } from './watch.js';

/**
 * No queue has these keys after its jobs have ended and been removed, and its workers have stopped. `ready` may have a line whose last
 * job was removed; the next claim drops it.
 */
const GONE = new RegExp(`:(${AUDITED.join('|')}|jobs\\w|workers|active:.*)$`);
/**
 * An application that had little time to stop, or whose connection was cut meanwhile, may leave these keys. They expire.
 */
export const EXPIRING = ['worker', 'processes'] as const;
const EXPIRE = new RegExp(`:(${EXPIRING.join('|')})(:.*)?$`);

/** How long the queues of a run may take until all jobs have ended. */
const DRAINS = { timeout: 45_000 } as const;
const PLACES_ARE_FREE = { timeout: 10_000, what: 'no job has a place of a shared limit' } as const;
const EVENTS_ARRIVE = { timeout: 15_000 } as const;

interface SoakReport {
  readonly faults: readonly string[];
  readonly jobs: number;
  readonly starts: number;
}

export interface SoakOptions {
  /** Ends the connections to Redis. @default they are not ended */
  readonly cut?: () => Promise<void>;
  /** Whether the workers are other processes, which are killed. @default false */
  readonly isForked?: boolean;
}

/** Runs the applications of a plan with random jobs and acts until every job has ended. Returns the faults. */
export async function soak(
  redis: Stage['redis'],
  plan: Plan,
  { cut, isForked = false }: SoakOptions = {},
): Promise<SoakReport> {
  const watch = new Watch(plan);
  if (isForked) watch.longestClaimMs = Infinity;
  const replay = isForked ? new Replay(watch) : null;
  const stage = { redis, plan, watch, witness: replay ?? watch, logs: new Logs() };
  const producer = await bootSoakApp(stage, null);
  for (const { name } of plan.queues) {
    producer.events.of(name).subscribe((event) => {
      watch.event(event);
      replay?.event(event);
    });
    await producer.events.ready(name);
  }
  const acts = new Acts(
    stage,
    producer,
    replay ? forking(replay, plan.seed) : hostHere,
    cut ?? (async () => {}),
  );
  await acts.play();
  const end = new End(stage, producer, acts, cut !== undefined);
  await end.settle();
  replay?.play();
  await end.check();
  return { faults: watch.faults, jobs: watch.jobs.size, starts: watch.starts };
}

/** The end of a run: everything is opened, until every job has ended. */
class End {
  private readonly retries = new Map<string, number>();

  constructor(
    private readonly stage: Stage,
    private readonly producer: QueueApp,
    private readonly acts: Acts,
    private readonly isCut: boolean,
  ) {}

  /** Waits until every job has ended, and stops the workers. */
  async settle(): Promise<void> {
    const { plan } = this.stage;
    for (const { name } of plan.queues) await this.endSchedules(name);
    for (const queue of plan.queues) await this.open(queue);
    for (const queue of plan.queues) await this.drain(queue);
    // Acts in the background may have retried jobs meanwhile.
    await this.acts.end();
    for (const queue of plan.queues) await this.drain(queue);
    await until(() => this.hasNoPlaces(), PLACES_ARE_FREE).catch(({ message }: Error) =>
      this.stage.watch.fault(message),
    );
    await Promise.all(this.acts.hosts.map((host) => host.close()));
  }

  private async hasNoPlaces(): Promise<boolean> {
    const limits = await this.queue(this.stage.plan.queues[0]!.name).limits.listShared();
    return limits.every(({ running }) => !running);
  }

  /** Checks what is left. */
  async check(): Promise<void> {
    const { watch, plan } = this.stage;
    for (const { name } of plan.queues) await this.clear(this.queue(name));
    const hadTime =
      !this.isCut && plan.leaseMs === undefined && plan.apps.every(({ shutdown }) => shutdown === null);
    for (const key of await this.stage.redis.keys())
      if (GONE.test(key) || (hadTime && EXPIRE.test(key))) watch.fault(`${key} is left`);
    await until(() => watch.faultsOfEnds().length === 0, EVENTS_ARRIVE).catch(() => {
      for (const fault of watch.faultsOfEnds()) watch.fault(fault);
    });
    await this.producer.close();
  }

  private async endSchedules(name: string): Promise<void> {
    const { watch } = this.stage;
    const { schedules } = this.queue(name);
    for (const { id } of await schedules.list()) await schedules.pause(id);
    for (const { id, fired } of await schedules.list()) {
      const limit = SCHEDULES[id]!;
      if (fired > limit)
        watch.fault(`${name}: schedule ${id} has added ${fired} jobs, its limit is ${limit}`);
      watch.scheduled(name, id, fired);
      await schedules.remove(id);
    }
  }

  /** Audits a queue without waiting jobs, and removes everything in it. */
  private async clear(queue: Queue): Promise<void> {
    const { violations } = await queue.audit();
    for (const { text } of violations) this.stage.watch.fault(`${queue.name}: ${text}`);
    const { seed, leaseMs } = this.stage.plan;
    // Long runs may have results that expired, and no worker is left to delete them. `remove` finds only those that are kept.
    if (leaseMs !== undefined || seed % 2 === 0) return queue.obliterate();
    for (const state of ['dead', 'completed', 'cancelled'] as const) await queue.remove({ state });
  }

  /** Waits until a queue is empty. Dead jobs that stop their group are retried, and in the end removed. */
  private async drain(plan: QueuePlan): Promise<void> {
    const queue = this.queue(plan.name);
    let left = '';
    const isDrained = async () => {
      const counts = await queue.counts();
      left = JSON.stringify(counts);
      if (counts.waiting + counts.delayed + counts.active === 0) return true;
      await this.retryDead(queue);
      return false;
    };
    await until(() => isDrained(), { ...DRAINS, what: () => `${plan.name} is empty: ${left}` }).catch(
      async (error: Error) => {
        const limits = [...(await queue.limits.list()), ...(await queue.limits.listShared())];
        this.stage.watch.fault(`${error.message} ${JSON.stringify(limits)}`);
      },
    );
  }

  private async retryDead(queue: Queue): Promise<void> {
    this.stage.witness.outOfOrder();
    const { jobs } = await queue.dead.list({ limit: 20 });
    for (const { id } of jobs) {
      const times = (this.retries.get(id) ?? 0) + 1;
      this.retries.set(id, times);
      await this.acts.allow(() => (times > 3 ? queue.remove(id) : queue.dead.retry(id)));
    }
  }

  /** Ends everything that holds the jobs of a queue back. */
  private async open(plan: QueuePlan): Promise<void> {
    const queue = this.queue(plan.name);
    await queue.resume();
    await queue.limits.release();
    if (plan.order !== 'none') for (const group of GROUPS) await queue.group(group).resume();
    for (const host of this.acts.hosts) {
      const { app } = host;
      await app?.runtime.start();
      app?.runtime.resume();
    }
  }

  private queue(name: string): Queue {
    return this.producer.queueOf(name);
  }
}
