import type { MaxWaitingOptions } from '#lib/options/bounds.js';
import type { GroupOptions, NameLimitOptions, QueueLimitOptions } from '#lib/options/limit-options.js';
import type { QueueModuleOptions, QueueOptions } from '#lib/options/module-options.js';
import { Random } from '../chaos/random.js';

/** The applications of one run. All of it follows from the seed. */
export interface Plan {
  readonly seed: number;
  readonly shared: NonNullable<QueueModuleOptions['limits']>;
  readonly queues: readonly QueuePlan[];
  readonly apps: readonly AppPlan[];
  /** How many acts the run has: adds, cancels, pauses, restarts. */
  readonly acts: number;
  /** The longest pause between two acts. */
  readonly paceMs: number;
  /** How long the lease of a worker lasts; undefined: the default. */
  readonly leaseMs?: number;
}

type Order = 'none' | 'fair' | 'strict';

export interface QueuePlan extends Pick<QueueOptions, 'limits' | 'groups' | 'uses' | 'maxWaiting'> {
  readonly name: string;
  readonly order: Order;
  /** Jobs of this name come to their handler in batches. */
  readonly batch: { readonly size: number; readonly minSize: number } | null;
}

export interface AppPlan {
  readonly concurrency: number;
  /** The queues whose jobs it runs. */
  readonly runs: readonly string[];
  /** Whether one pool runs all its queues. */
  readonly isOnePool: boolean;
  /** The weights of its queues in one pool. Null: the queues have an order. */
  readonly weights: readonly number[] | null;
  /** How long it waits for its runs when it stops, in ms; some handlers take longer. Null: long enough. */
  readonly shutdown: { readonly timeout: number; readonly grace: number } | null;
}

/** `batch` goes to batches in queues that have them; `bundle` collects items. */
export const NAMES = ['first', 'second', 'batch'] as const;
export const BUNDLE = 'bundle';
export const GROUPS = ['g1', 'g2', 'g3', 'g4', 'g5'] as const;
/** How many jobs each schedule adds. */
export const SCHEDULES: Readonly<Record<string, number>> = { s1: 1, s2: 3 };

/** Returns `value()` with this probability, otherwise an empty object. */
function maybe<T extends object>(random: Random, chance: number, value: () => T): Partial<T> {
  return random.next() < chance ? value() : {};
}

export function rateOf(random: Random) {
  const window = random.pick(['sliding', 'fixed', 'bucket'] as const);
  return { max: random.int(5, 30), per: random.int(100, 300), window };
}

function nameLimit(random: Random): NameLimitOptions {
  return {
    ...maybe(random, 0.6, () => ({ concurrency: random.int(1, 4) })),
    ...maybe(random, 0.3, () => ({ rate: rateOf(random) })),
    ...maybe(random, 0.2, () => ({ retryBudget: { max: random.int(3, 10), per: 200 } })),
  };
}

/** A name without any limit is refused. */
function namesOf(random: Random): Pick<QueueLimitOptions, 'names'> {
  const drawn = Object.entries({ first: nameLimit(random), batch: nameLimit(random) });
  return { names: Object.fromEntries(drawn.filter(([, limit]) => Object.keys(limit).length > 0)) };
}

function queueLimits(random: Random, hasGroups: boolean): QueueLimitOptions {
  const names = hasGroups ? {} : maybe(random, 0.4, () => namesOf(random));
  const breaker = {
    failures: random.int(5, 15),
    ratio: 0.8,
    window: 500,
    openFor: random.int(50, 200),
    probes: 2,
  };
  return { ...nameLimit(random), ...names, ...maybe(random, 0.2, () => ({ breaker })) };
}

function groupOptions(random: Random, order: 'fair' | 'strict'): GroupOptions {
  return {
    order,
    ...(order === 'fair'
      ? {
          ...maybe(random, 0.6, () => ({ concurrency: random.int(1, 3) })),
          ...maybe(random, 0.4, () => ({ fairness: 'in-flight' as const })),
        }
      : maybe(random, 0.5, () => ({ onDead: 'block' as const }))),
    ...maybe(random, 0.3, () => ({ rate: rateOf(random) })),
  };
}

function maxWaiting(random: Random, order: Order): MaxWaitingOptions {
  // A bulk has up to 15 jobs.
  const limit = random.int(15, 40);
  const onFull = random.pick(['reject', 'dropNew', 'dropOldest', 'wait'] as const);
  if (order !== 'none' && onFull === 'dropOldest') return { limit };
  // An add that waits may come after later ones.
  if (order === 'strict' && onFull === 'wait') return { limit };
  return { limit, onFull, ...(onFull === 'wait' && { timeout: '90s' }) };
}

function queuePlan(random: Random, name: string, shared: Plan['shared']): QueuePlan {
  const order = random.pick<Order>(['none', 'none', 'fair', 'strict']);
  const size = random.int(2, 4);
  const names = Object.keys(shared);
  const plan = {
    name,
    order,
    ...maybe(random, 0.6, () => ({ limits: queueLimits(random, order !== 'none') })),
    ...(order === 'none' ? {} : { groups: groupOptions(random, order) }),
    ...(names.length > 0 ? maybe(random, 0.5, () => ({ uses: [random.pick(names)] })) : {}),
    ...maybe(random, 0.3, () => ({ maxWaiting: maxWaiting(random, order) })),
  };
  const { limits, uses = [] } = plan;
  const limited = [limits, limits?.names?.['batch'], ...uses.map((one) => shared[one])];
  // An application does not start with a `minSize` above a concurrency.
  const most = Math.min(...limited.map((limit) => limit?.concurrency ?? size));
  const batch = random.next() < 0.5 ? { size, minSize: Math.min(random.int(1, size), most) } : null;
  return { ...plan, batch };
}

export function planOf(seed: number): Plan {
  const random = new Random(seed);
  const shared = Object.fromEntries(
    ['api', 'disk']
      .slice(0, random.int(0, 2))
      .map((name) => [
        name,
        { concurrency: random.int(1, 5), ...maybe(random, 0.3, () => ({ rate: rateOf(random) })) },
      ]),
  );
  const names = ['one', 'two', 'three'].slice(0, random.int(1, 3));
  const queues = names.map((name) => queuePlan(random, name, shared));
  const apps = Array.from({ length: random.int(1, 3) }, (_, at): AppPlan => {
    const some = names.filter(() => random.next() < 0.7);
    // The first runs all, so that each queue has a worker.
    return {
      concurrency: random.int(4, 12),
      runs: at === 0 || some.length === 0 ? names : some,
      isOnePool: random.next() < 0.5,
      weights: random.next() < 0.5 ? names.map(() => random.int(1, 5)) : null,
      shutdown: random.next() < 0.4 ? { timeout: random.int(0, 100), grace: random.int(0, 30) } : null,
    };
  });
  return { seed, shared, queues, apps, acts: random.int(80, 250), paceMs: 15 };
}

/** A plan of worker processes that are killed. They take longer to start, and have short leases. */
export function forkedPlanOf(seed: number): Plan {
  const plan = planOf(seed);
  const apps = plan.apps.slice(0, 2);
  return { ...plan, apps, acts: plan.acts >> 1, paceMs: 100, leaseMs: 500 + (seed % 6) * 100 };
}
