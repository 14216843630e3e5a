import { loadavg, setPriority } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { allScripts } from '#lib/engine/script.js';
import type { AppProcess } from '../faults/support/spawn.js';
import type { Redis } from 'ioredis';
import { emptied, end, secondsSince, sum, type Lab } from './lab.js';
import type { Trial } from './trial.js';

const CHUNK = 5_000;
const SLOW_US = 5_000;
/** How many jobs come one by one, and in what time. */
const SINGLE = 2_000;
const SPREAD_MS = 20_000;

/** Delayed jobs run when they are due, one by one and all at once. */
export const delays: Trial = {
  name: 'delays',
  what: 'so many jobs due in the same second; others due one by one, with one process and with five: how late they start',
  times: 1,
  jobs: 100_000,
  async run(lab) {
    for (let i = 0; i < lab.times; i++) {
      await allAtOnce(lab);
      for (const processes of [1, 5]) await oneByOne(lab, processes);
    }
  },
};

async function allAtOnce(lab: Lab): Promise<void> {
  const args = ['--slowlog-log-slower-than', String(SLOW_US), '--slowlog-max-len', '100000'];
  const store = await lab.store({ args });
  goFirst(store.server.pid!);
  const queue = (await lab.producer(store, 'work')).queue('work');
  const workers = await startWorkers(lab, store, 2, 50);
  // So long that all of them are added before the first is due.
  const dueAt = Date.now() + 10_000 + lab.jobs / 10;
  for (let first = 0; first < lab.jobs; first += CHUNK) {
    const count = Math.min(CHUNK, lab.jobs - first);
    await queue.addBulk(
      Array.from({ length: count }, (_, i) => ({
        name: 'late',
        data: { n: first + i, at: dueAt },
        options: { runAt: dueAt + ((first + i) % 1_000) },
      })),
    );
  }
  if (Date.now() > dueAt) throw new Error('the jobs were due before all of them were added');
  lab.say(`${lab.jobs} delayed jobs added, load ${loadavg()[0]!.toFixed(1)}`);
  await pause(dueAt - Date.now());
  const since = performance.now();
  await emptied(queue, 600_000);
  lab.say(`all of them have run ${secondsSince(since).toFixed(2)} s after the first was due`);
  lab.judge({
    what: `${lab.jobs} jobs due in one second: the last has run`,
    value: secondsSince(since),
    unit: 's',
  });
  const ran = new Map<number, number>();
  for (const worker of workers) {
    for (const [n] of await latencies(worker)) ran.set(n, (ran.get(n) ?? 0) + 1);
  }
  const twice = [...ran.values()].filter((times) => times > 1).length;
  lab.judge({ what: 'jobs run twice, or never', value: twice + lab.jobs - ran.size, equals: 0 });
  const slow = (await store.admin.call('SLOWLOG', 'GET', '-1')) as [number, number, number, string[]][];
  for (const [, , us, [command, sha]] of slow) lab.say(`${nameOf(sha!) ?? command} took ${us / 1_000} ms`);
  const [p50, p99, p999] = await scriptTimes(store.admin);
  lab.judge({ what: 'a script holds Redis for, p50', value: p50, unit: 'ms' });
  lab.judge({ what: 'a script holds Redis for, p99', value: p99, unit: 'ms', atMost: SLOW_US / 1_000 });
  lab.judge({ what: 'a script holds Redis for, p99.9', value: p999, unit: 'ms' });
  lab.judge({ what: 'calls that took more than 5 ms', value: slow.length });
  await end(...workers);
}

async function oneByOne(lab: Lab, processes: number): Promise<void> {
  const store = await lab.store();
  const queue = (await lab.producer(store, 'work')).queue('work');
  const workers = await startWorkers(lab, store, processes, 10);
  // The first jobs compile and connect. They are not measured.
  await queue.addBulk(Array.from({ length: 200 }, (_, n) => jobDue(n, Date.now() + 200 + n * 10)));
  await emptied(queue);
  for (const worker of workers) await worker.call('forget');
  const start = Date.now() + 1_000;
  await queue.addBulk(
    Array.from({ length: SINGLE }, (_, n) => jobDue(n, start + Math.floor((n * SPREAD_MS) / SINGLE))),
  );
  await pause(start + SPREAD_MS - Date.now());
  const load = loadavg()[0]!;
  await emptied(queue);
  const waits = (await Promise.all(workers.map(latencies)))
    .flat()
    .map(([, ms]) => ms)
    .toSorted((a, b) => a - b);
  const at = (part: number) => waits[Math.min(waits.length - 1, Math.floor(waits.length * part))]!;
  const who = processes === 1 ? 'one process' : `${processes} processes`;
  lab.say(
    `${who}, load ${load.toFixed(1)}: ${waits.length} jobs late by ${at(0.5)} ms (p50), ${at(0.99)} (p99), ${at(1)} (worst), ` +
      `${(sum(waits) / waits.length).toFixed(2)} on average`,
  );
  lab.judge({ what: `${who}: a delayed job starts late by, p50`, value: at(0.5), unit: 'ms' });
  lab.judge({ what: `${who}: a delayed job starts late by, p99`, value: at(0.99), unit: 'ms', atMost: 10 });
  lab.judge({ what: `${who}: early`, value: waits.filter((ms) => ms < 0).length, unit: 'jobs', equals: 0 });
  await end(...workers);
}

const jobDue = (n: number, at: number) => ({ name: 'late', data: { n, at }, options: { runAt: at } });

function startWorkers(lab: Lab, store: Parameters<Lab['worker']>[0], count: number, concurrency: number) {
  return Promise.all(Array.from({ length: count }, () => lab.worker(store, { concurrency })));
}

const latencies = (worker: AppProcess) =>
  worker.ask({ timeout: 60_000 }, 'latencies') as Promise<[number, number][]>;

const nameOf = (sha: string) => allScripts().find((script) => script.sha === sha)?.name;

/** Of all script calls since the start, by the clock of Redis, in ms. */
async function scriptTimes(admin: Redis): Promise<readonly [number, number, number]> {
  const found = /latency_percentiles_usec_evalsha:p50=([\d.]+),p99=([\d.]+),p99\.9=([\d.]+)/.exec(
    await admin.info('latencystats'),
  );
  return [Number(found![1]) / 1_000, Number(found![2]) / 1_000, Number(found![3]) / 1_000];
}

/** The clock of SLOWLOG goes on while another process has the core. This measures the script, not the machine. */
function goFirst(pid: number): void {
  try {
    setPriority(pid, -20);
  } catch {
    // Without root the figure includes the machine.
  }
}
