import { setTimeout as pause } from 'node:timers/promises';
import type { ScheduleRule } from '#lib/options/schedule-options.js';
import type { AppProcess } from '../faults/support/spawn.js';
import { Ledger } from '../faults/support/ledger.js';
import { until } from '../support/wait.js';
import { emptied, end, secondsSince, sum, type Lab, type Store } from './lab.js';
import { cronOccurrences } from './support/occurrences.js';
import type { Trial } from './trial.js';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../support/cleanup.js';

/** How many times as fast time passes for Redis and the workers. */
const RATE = 10;
const WORKERS = 5;
const MINUTE = 60_000;
const LASTS_MS = 10 * MINUTE;
/** Within it the clock of Berlin goes back from 3 to 2. */
const START = Date.UTC(2026, 9, 25, 0, 53);
/** Between two kills of workers, in real time. */
const PEACE_MS = 8_000;
const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe'] as const;

interface Plan {
  readonly id: string;
  readonly rule: ScheduleRule;
  readonly occurrences: readonly number[];
}

/** Occurrences are neither lost nor doubled while several processes come and go. */
export const schedules: Trial = {
  name: 'schedules',
  what: `50 schedules in ${WORKERS} processes for ten minutes of a clock that is ${RATE} times as fast, while workers are killed and started`,
  times: 1,
  async run(lab) {
    for (let i = 0; i < lab.times; i++) await round(lab);
  },
};

async function round(lab: Lab): Promise<void> {
  const clock = new FastClock(RATE, START);
  const store = await lab.store({ env: clock.env });
  const queue = (await lab.producer(store, 'work')).queue('work');
  const ledger = new Ledger();
  const hire = () =>
    lab.worker(store, {
      env: clock.env,
      concurrency: 20,
      as: { tick: 'quick' },
      ledger: ledger.file(),
      root: { lease: { duration: '60s' } },
    });
  const workers = await Promise.all(Array.from({ length: WORKERS }, hire));
  // Until all of them are made, by this clock.
  const from = (await now(store)) + MINUTE;
  const plans = plan(from, from + LASTS_MS);
  // Each process declares all of them at its start, as a release does.
  const say = () =>
    Promise.all(plans.map(({ id, rule }) => queue.schedules.upsert(id, rule, { name: 'tick', data: id })));
  await Promise.all(Array.from({ length: WORKERS }, say));
  const since = performance.now();
  const killed = await turmoil(store, workers, hire, from + LASTS_MS);
  const all = () => queue.schedules.list({ limit: 1_000 });
  const haveEnded = async () => {
    await pause(200);
    return (await all()).every(({ ended }) => ended);
  };
  await until(haveEnded, { timeout: 120_000, what: 'every schedule has ended' });
  await emptied(queue);
  const fired = sum((await all()).map((one) => one.fired));
  await end(...workers);
  lab.say(`${fired} jobs in ${secondsSince(since).toFixed(0)} s, ${killed} workers killed`);
  judge(lab, plans, fired, ledger.times('S'));
}

function judge(lab: Lab, plans: readonly Plan[], fired: number, runs: ReadonlyMap<string, number>): void {
  const expected = new Set(
    plans.flatMap(({ id, occurrences }) => occurrences.map((at) => `${id}@${new Date(at).toISOString()}`)),
  );
  const missing = [...expected].filter((id) => !runs.has(id));
  const strange = [...runs.keys()].filter((id) => !expected.has(id));
  for (const id of [...missing, ...strange].slice(0, 10))
    lab.say(`${expected.has(id) ? 'missing' : 'strange'}: ${id}`);
  lab.judge({ what: `schedules`, value: plans.length, equals: 50 });
  lab.judge({ what: 'occurrences', value: expected.size, atLeast: 2_500 });
  lab.judge({ what: 'jobs made for them', value: fired, equals: expected.size });
  lab.judge({ what: 'occurrences whose job never ran', value: missing.length, equals: 0 });
  lab.judge({ what: 'jobs of no occurrence', value: strange.length, equals: 0 });
  const twice = [...runs.values()].filter((times) => times > 1).length;
  lab.judge({ what: 'jobs that ran again after their worker was killed', value: twice });
}

/** Twenty intervals and thirty expressions, six in each zone. */
function plan(startAt: number, endAt: number): Plan[] {
  const seconds = [1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 12.345, 15, 20, 30, 33, 45, 60, 90, 120, 200, 600];
  const bounds = { endAt, missed: 'all' } as const;
  const intervals = seconds.map((s, i): Plan => {
    const every = s * 1_000;
    // Half of them are counted from their start, the others from 1970.
    if (i % 2 === 0) {
      const occurrences = Array.from(
        { length: Math.floor((endAt - startAt) / every) + 1 },
        (_, n) => startAt + n * every,
      );
      return { id: `every-${every}`, rule: { every, startAt, ...bounds }, occurrences };
    }
    const first = Math.ceil(startAt / every) * every;
    const occurrences = [];
    for (let at = first; at <= endAt; at += every) occurrences.push(at);
    return { id: `every-${every}`, rule: { every, startAt: first, ...bounds }, occurrences };
  });
  const crons = [
    '*/10 * * * * *',
    '15,45 * * * * *',
    '* * * * *',
    '*/2 * * * *',
    '30 0-59 2 * * *',
    '5-8 */3 * * * 0',
  ];
  const expressions = ZONES.flatMap((tz) =>
    crons.map((cron): Plan => {
      const occurrences = cronOccurrences(cron, tz, startAt, endAt);
      // A schedule without an occurrence between start and end would be refused.
      const rule = { cron, tz, ...(occurrences.length > 0 && { startAt }), ...bounds };
      return { id: `cron-${tz}-${cron.replaceAll(' ', '_')}`, rule, occurrences };
    }),
  );
  return [...intervals, ...expressions];
}

/** Until then, kills one worker after another and starts a new one each time. Returns how many. */
async function turmoil(
  store: Store,
  workers: AppProcess[],
  hire: () => Promise<AppProcess>,
  untilMs: number,
): Promise<number> {
  let killed = 0;
  for (; (await now(store)) < untilMs; killed++) {
    await pause(PEACE_MS);
    const victim = killed % workers.length;
    // Every second worker is told to end, as at a release.
    await stop(workers[victim]!, killed % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
    workers[victim] = await hire();
  }
  return killed;
}

async function stop(worker: AppProcess, signal: NodeJS.Signals): Promise<void> {
  worker.kill(signal);
  await worker.exit({ timeout: 60_000 });
}

async function now({ admin }: Store): Promise<number> {
  const [seconds, micros] = await admin.time();
  return seconds! * 1_000 + Math.floor(micros! / 1_000);
}

const SOURCE = fileURLToPath(new URL('fast.c', import.meta.url));

/**
 * Clocks that run faster than the true one, for processes that are started with its `env`. Needs a C compiler, on
 * Linux.
 */
class FastClock {
  readonly env: Readonly<Record<string, string>>;

  /** @param startMs what they show now, ms since 1970 */
  constructor(
    readonly rate: number,
    startMs: number,
  ) {
    const dir = temporaryFolder();
    const library = join(dir, 'fast.so');
    execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.env = {
      LD_PRELOAD: library,
      FAST_RATE: String(rate),
      FAST_SINCE: String(Date.now()),
      FAST_START: String(startMs),
    };
  }
}
