import { setTimeout as pause } from 'node:timers/promises';
import { emptied, end, sum, type Lab, type Store } from './lab.js';
import type { Trial } from './trial.js';

const MB = 1024 * 1024;
const WARM_UP = 500_000;
const CHUNKS = 50;

/** Nothing is left of jobs that have ended: no key, no memory, no second run. */
export const volume: Trial = {
  name: 'volume',
  what: 'so many jobs through one producer and one worker: keys and memory before and after, jobs run twice',
  times: 1,
  jobs: 5_000_000,
  async run(lab) {
    const store = await lab.store();
    const queue = (await lab.producer(store, 'work')).queue('work');
    const execArgv = ['--expose-gc'];
    const worker = await lab.worker(store, { concurrency: 100, execArgv });
    const producer = await lab.worker(store, { root: { role: 'producer' }, execArgv });
    const memory = async () =>
      (await worker.call('memory', { collect: true })) as { rss: number; heapUsed: number };
    const fill = async (from: number, count: number) => {
      await producer.ask({ timeout: 3_600_000 }, 'fill', { from, count, name: 'count' });
      await emptied(queue);
    };
    const warmUp = Math.min(WARM_UP, lab.jobs);
    // Memory of its own: the array that counts the runs has its full size from the beginning.
    await fill(lab.jobs, warmUp);
    const before = await atRest(store);
    const since = performance.now();
    const points: [number, number, number][] = [];
    for (let i = 0; i < CHUNKS; i++) {
      const from = Math.round((lab.jobs * i) / CHUNKS);
      const next = Math.round((lab.jobs * (i + 1)) / CHUNKS);
      await fill(from, next - from);
      const { rss, heapUsed } = await memory();
      points.push([next / 1e6, rss / MB, heapUsed / MB]);
    }
    const seconds = (performance.now() - since) / 1_000;
    const after = await atRest(store);
    const { twice, never } = (await worker.call('tally', lab.jobs + warmUp)) as {
      twice: number;
      never: number;
    };
    lab.say(`${lab.jobs} jobs in ${seconds.toFixed(0)} s`);
    for (const [when, { keys, used, clients }] of Object.entries({ before, after })) {
      const sizes = keys.map(([key, bytes]) => `${key} ${bytes}`).join(', ');
      lab.say(`Redis ${when}: ${used} bytes, of it for connections ${clients}; ${sizes}`);
    }
    judge(lab, { before, after, points, twice, never });
    await end(worker, producer);
  },
};

interface AtRest {
  /** With the bytes of each. */
  readonly keys: readonly (readonly [key: string, bytes: number])[];
  readonly used: number;
  /** The part of it that connections use. */
  readonly clients: number;
}

/** The keys in Redis while nothing happens, and their memory once freed pages are returned. */
async function atRest({ admin }: Store): Promise<AtRest> {
  // Longer than a repeated add is recognised. The records of the producer's last calls expire.
  await pause(15_000);
  // On a busy machine many calls are slow, and the slow log of Redis holds the last of them with their arguments.
  await admin.call('SLOWLOG', 'RESET');
  await admin.call('MEMORY', 'PURGE');
  const keys: [string, number][] = [];
  // The record of the last upkeep exists until the next one. Either look may find it.
  const lasting = (await admin.keys('*')).filter((key) => !key.includes(':janitor:'));
  for (const key of lasting.toSorted()) {
    keys.push([key, Number(await admin.call('MEMORY', 'USAGE', key, 'SAMPLES', '0'))]);
  }
  const used = Number(/used_memory:(\d+)/.exec(await admin.info('memory'))![1]);
  const clients = Number(/mem_clients_normal:(\d+)/.exec(await admin.info('memory'))![1]);
  return { keys, used, clients };
}

interface Measured {
  readonly before: AtRest;
  readonly after: AtRest;
  /** Jobs done in millions, resident memory and heap of the worker in MB. */
  readonly points: readonly (readonly [number, number, number])[];
  readonly twice: number;
  readonly never: number;
}

function judge(lab: Lab, { before, after, points, twice, never }: Measured): void {
  const total = `${lab.jobs / 1e6} million jobs`;
  lab.judge({ what: `${total}: run twice`, value: twice, equals: 0 });
  lab.judge({ what: `${total}: not run`, value: never, equals: 0 });
  lab.judge({
    what: `${total}: keys after, less keys before`,
    value: after.keys.length - before.keys.length,
    equals: 0,
  });
  const grown = (after.used / before.used - 1) * 100;
  lab.judge({ what: `${total}: memory of Redis grown by`, value: grown, unit: '%', atMost: 1 });
  const half = points.slice(points.length / 2);
  const [rss, heap] = [1, 2].map((column) => growth(half.map((point) => [point[0], point[column]!])));
  const mean = sum(half.map((point) => point[1])) / half.length;
  lab.say(
    `worker, over the last half: mean ${mean.toFixed(0)} MB resident, heap at the end ${half.at(-1)![2].toFixed(1)} MB`,
  );
  lab.judge({
    what: `${total}: resident memory of the worker grown by, over the last half`,
    value: (rss! / mean) * 100,
    unit: '%',
    atMost: 5,
  });
  lab.judge({
    what: `${total}: its heap grown by, over the last half`,
    value: heap!,
    unit: 'MB',
    atMost: 0.5,
  });
}

/** How much y rises from the first to the last x, on the straight line of best fit. */
function growth(points: readonly (readonly [number, number])[]): number {
  const mean = (at: 0 | 1) => sum(points.map((point) => point[at])) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const slope = sum(points.map(([px, py]) => (px - x) * (py - y))) / sum(points.map(([px]) => (px - x) ** 2));
  return slope * (points.at(-1)![0] - points[0]![0]);
}
