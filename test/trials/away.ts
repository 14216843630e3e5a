import { createConnection } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { AppProcess } from '../faults/support/spawn.js';
import { atEnd } from '../support/cleanup.js';
import { until } from '../support/wait.js';
import { emptied, end, secondsSince, sum, worst, type Lab, type Store } from './lab.js';
import type { Trial } from './trial.js';

/** Seconds, and how often. */
const OUTAGES = [
  [1, 8],
  [8, 4],
  [30, 2],
  [300, 1],
] as const;
const PER_SECOND = 500;
const MAX_RESUME_S = 1.5;
/**
 * How much more memory a process may need than before: for adds that wait for Redis, and for the errors of those that
 * waited in vain.
 */
const MAX_GROWTH_MB = 64;
const MB = 1024 * 1024;

interface Outage {
  readonly seconds: number;
  readonly resumed: number;
  readonly grown: { readonly producer: number; readonly worker: number };
  readonly lost: number;
  readonly brokenWords: number;
}

/** Work goes on as soon as Redis is back, and waiting for it costs little. */
export const away: Trial = {
  name: 'away',
  what: `Redis is killed and comes back after ${OUTAGES.map(([s]) => s).join(', ')} s, with ${PER_SECOND} adds a second all the time`,
  times: 1,
  async run(lab) {
    const all = OUTAGES.flatMap(([seconds, times]) => Array<number>(times * lab.times).fill(seconds));
    const long = all.filter((seconds) => seconds >= 300);
    const short = async () => {
      const outages: Outage[] = [];
      for (const seconds of all.filter((one) => one < 300)) outages.push(await outage(lab, seconds));
      return outages;
    };
    const [first, ...rest] = await Promise.all([short(), ...long.map((seconds) => outage(lab, seconds))]);
    const outages = [...first, ...rest];
    for (const [seconds] of OUTAGES) {
      const these = outages.filter((one) => one.seconds === seconds);
      lab.judge({
        what: `${seconds} s away: a job runs after Redis listens, worst of ${these.length}`,
        value: worst(these.map(({ resumed }) => resumed)),
        unit: 's',
        atMost: MAX_RESUME_S,
      });
    }
    for (const who of ['producer', 'worker'] as const) {
      const value = worst(outages.map(({ grown }) => grown[who]));
      lab.judge({ what: `memory of the ${who}: most it grew by`, value, unit: 'MB', atMost: MAX_GROWTH_MB });
    }
    lab.judge({ what: 'acknowledged jobs lost', value: sum(outages.map(({ lost }) => lost)), equals: 0 });
    lab.judge({
      what: 'jobs that ran though their add was refused, and jobs run twice',
      value: sum(outages.map(({ brokenWords }) => brokenWords)),
      equals: 0,
    });
  },
};

async function outage(lab: Lab, seconds: number): Promise<Outage> {
  const store = await lab.store({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
  const queue = (await lab.producer(store, 'work')).queue('work');
  const execArgv = ['--expose-gc'];
  const worker = await lab.worker(store, { concurrency: 20, execArgv });
  const producer = await lab.worker(store, { root: { role: 'producer' }, execArgv });
  await producer.call('flood', { perSecond: PER_SECOND, name: 'count' });
  const runs = async () => ((await worker.call('tally', 0)) as { runs: number }).runs;
  await until(async () => (await runs()) > 2 * PER_SECOND, { timeout: 30_000 });
  const growth = { producer: await growing(producer), worker: await growing(worker) };
  await store.server.kill9();
  await pause(seconds * 1_000);
  const listening = listens(store);
  const restarted = store.server.restart();
  const since = await listening;
  const isAfter = ({ at }: { at: number }) => at >= since;
  const { at } = await worker.first('gap', isAfter, {
    timeout: 60_000,
    what: 'a job runs after the restart',
  });
  await restarted;
  const before = await runs();
  await until(async () => (await runs()) > before + PER_SECOND, { timeout: 30_000 });
  const grown = { producer: growth.producer(), worker: growth.worker() };
  const words = (await producer.ask({ timeout: 60_000 }, 'ebb')) as Record<string, any>;
  await emptied(queue);
  const doubtful = [...words.refused, ...words.unknown];
  const tally = (await worker.call('tally', words.made, doubtful)) as Record<string, any>;
  const refused = new Set(words.refused);
  const lost = tally.never - (doubtful.length - tally.ran.length);
  const brokenWords =
    tally.twice + tally.ran.filter((n: number) => refused.has(n)).length + words.others.length;
  await end(worker, producer);
  await store.server.stop();
  const resumed = secondsSince(since, at);
  lab.say(
    `${seconds} s: resumed in ${resumed.toFixed(2)} s; ${words.made} adds, ${words.stored} stored, ${words.refused.length} refused, ` +
      `${words.unknown.length} unknown, the longest ${Math.round(words.longestMs)} ms; ` +
      `grown by ${grown.producer.toFixed(0)} MB (producer), ${grown.worker.toFixed(0)} MB (worker)`,
  );
  return { seconds, resumed, grown, lost, brokenWords };
}

/** Watches the memory of a process. Returns its largest growth in MB. */
async function growing(app: AppProcess): Promise<() => number> {
  const rss = async () => ((await app.call('memory', {})) as { rss: number }).rss;
  const { rss: before } = (await app.call('memory', { collect: true })) as { rss: number };
  let most = before;
  const look = () =>
    void rss().then(
      (now) => (most = Math.max(most, now)),
      () => undefined,
    );
  const timer = setInterval(look, 1_000);
  atEnd(() => clearInterval(timer));
  return () => {
    clearInterval(timer);
    return (most - before) / MB;
  };
}

/** Resolves with the time at which its port accepts connections. */
async function listens({ server }: Store): Promise<number> {
  const tries = () =>
    new Promise<boolean>((resolve) => {
      const socket = createConnection({ host: '127.0.0.1', port: server.port });
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
  for (;;) {
    const at = performance.now();
    if (await tries()) return at;
    await pause(2);
  }
}
