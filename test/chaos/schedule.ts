import { type FaultKind, FAULTS } from './faults.js';
import type { Options } from './options.js';
import { Random } from './random.js';

/** One fault of a run. */
export interface Act {
  /** When it is due, as a share of the run from 0 to 1. So it can be repeated on a faster or slower machine. */
  readonly at: number;
  readonly kind: FaultKind;
  /** Faults of one lane wait for each other; those of different lanes overlap. */
  readonly lane: string;
  readonly slot: number;
  /** The variant of the fault. */
  readonly how: string;
  readonly ms: number;
  readonly count: number;
}

/**
 * A poison job kills six processes, one lease after the other, so it comes early: the run should not have to wait for
 * the last.
 */
const SOONER: Partial<Record<FaultKind, number>> = { poison: 0.3 };

type Draft = Pick<Act, 'lane'> & Partial<Act>;

/** All faults of a run, from the seed alone. Each kind is spread over the whole run. */
export function makeSchedule(options: Options): Act[] {
  const random = new Random(options.seed);
  const acts: Act[] = [];
  for (const kind of Object.keys(FAULTS) as FaultKind[]) {
    const count = options.faults[kind];
    for (let i = 0; i < count; i++) {
      const at = 0.02 + (0.96 * (i + random.next())) / count;
      const draft = DRAFTS[kind](random, options, i);
      acts.push({ slot: 0, how: '', ms: 0, count: 0, ...draft, at: at * (SOONER[kind] ?? 1), kind });
    }
  }
  return acts.toSorted((a, b) => a.at - b.at);
}

const worker = (random: Random, { workers }: Options) => {
  const slot = random.int(0, workers - 1);
  return { slot, lane: `worker ${slot}` };
};
const producer = (random: Random, { producers }: Options) => {
  const slot = random.int(0, producers - 1);
  return { slot, lane: `producer ${slot}` };
};
/** First the connections of the workers, then those of the producers. */
const line = (random: Random, options: Options) => {
  const slot = random.int(0, options.workers + options.producers - 1);
  const { workers } = options;
  return { slot, lane: slot < workers ? `worker ${slot}` : `producer ${slot - workers}` };
};

const DRAFTS: Record<FaultKind, (random: Random, options: Options, i: number) => Draft> = {
  'worker-kill': (random, options, i) => ({
    ...worker(random, options),
    how: ['any-time', 'after-end', 'mid-settle'][i % 3]!,
    count: random.int(1, options.concurrency),
    ms: random.int(0, 500),
  }),
  'worker-stop': (random, options) => ({
    ...worker(random, options),
    ms: Math.round(options.leaseMs * (1.5 + random.next())),
  }),
  'worker-term': worker,
  'producer-kill': (random, options) => ({ ...producer(random, options), count: random.int(1, 12) }),
  'redis-kill': (random) => ({ lane: 'redis', ms: random.int(50, 2_000) }),
  'redis-stall': (random, { leaseMs }, i) => ({
    lane: 'redis',
    how: ['stop', 'pause', 'sleep'][i % 3]!,
    ms: random.int(300, Math.round(leaseMs * 1.5)),
  }),
  'client-kill': (random) => ({ lane: 'redis', count: random.int(1, 5), ms: random.int(50, 500) }),
  cut: (random, options) => ({
    ...line(random, options),
    how: random.pick(['up', 'down']),
    count: Math.ceil(2 ** (random.next() * 16)),
    ms: 5_000,
  }),
  delay: (random, options) => ({
    ...line(random, options),
    count: random.int(20, 400),
    ms: random.int(1_000, 4_000),
  }),
  'half-open': (random, options) => ({
    ...line(random, options),
    how: random.pick(['one', 'one', 'all']),
    count: random.int(0, 99),
    ms: random.int(1_000, 8_000),
  }),
  bandwidth: (random, options) => ({
    ...line(random, options),
    count: random.int(20, 200) * 1_000,
    ms: random.int(1_000, 4_000),
  }),
  loss: (random, options) => ({ ...line(random, options), ms: random.int(100, 2_000) }),
  late: (random, options) => ({ ...line(random, options), ms: random.int(6_000, 9_000) }),
  'script-flush': () => ({ lane: 'redis' }),
  'aof-cut': (random) => ({
    lane: 'redis',
    ms: random.int(50, 2_000),
    count: random.int(1, 64) * 1_000,
  }),
  'full-memory': (random) => ({ lane: 'redis', ms: random.int(500, 3_000) }),
  'full-disk': (random) => ({ lane: 'redis', ms: random.int(500, 3_000) }),
  poison: (random, options) => ({ slot: producer(random, options).slot, lane: 'jobs' }),
  blocker: (random, options) => ({
    slot: producer(random, options).slot,
    lane: 'jobs',
    ms: Math.round(options.leaseMs * (1.2 + random.next())),
  }),
};
