import { setTimeout as pause } from 'node:timers/promises';
import { emptied, end, type Lab, type Store } from './lab.js';
import type { Trial } from './trial.js';

const MB = 1024 * 1024;
const WARM_UP = 500_000;
const CHUNKS = 50;

/** That nothing is left of jobs that are done: no key, no memory, no second run. */
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
    // Its own numbers: what counts the runs has its full size from the beginning.
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
    lab.say(
      `${lab.jobs} jobs in ${seconds.toFixed(0)} s; keys ${before.keys.join(' ')} -> ${after.keys.join(' ')}; ` +
        `Redis ${before.used} -> ${after.used} bytes`,
    );
    judge(lab, { before, after, points, twice, never });
    await end(worker, producer);
  },
};

interface AtRest {
  readonly keys: readonly string[];
  readonly used: number;
}

/** What is in Redis while nothing happens, and the memory it takes once freed pages are given back. */
async function atRest({ admin }: Store): Promise<AtRest> {
  // Longer than a repetition of an add is recognised: the records of the producer's last calls go by themselves.
  await pause(15_000);
  await admin.call('MEMORY', 'PURGE');
  const keys = (await admin.keys('*')).toSorted();
  const used = Number(/used_memory:(\d+)/.exec(await admin.info('memory'))![1]);
  return { keys, used };
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
  const [rss, heap] = [1, 2].map((column) => slope(half.map((point) => [point[0], point[column]!])));
  lab.say(`heap of the worker ${half[0]![2].toFixed(1)} -> ${half.at(-1)![2].toFixed(1)} MB`);
  lab.judge({
    what: `${total}: resident memory of the worker grows, over the last half`,
    value: rss!,
    unit: 'MB per million',
    atMost: 1,
  });
  lab.judge({
    what: `${total}: its heap grows, over the last half`,
    value: heap!,
    unit: 'MB per million',
    atMost: 0.1,
  });
}

/** Of the straight line that fits best. */
function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (at: 0 | 1) => points.reduce((total, point) => total + point[at], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const above = points.reduce((total, [px, py]) => total + (px - x) * (py - y), 0);
  return above / points.reduce((total, [px]) => total + (px - x) ** 2, 0);
}
