import { setTimeout as pause } from 'node:timers/promises';
import type { AppProcess } from '../faults/support/spawn.js';
import { collect, until } from '../support/wait.js';
import { emptied, end, secondsSince, worst, type Lab } from './lab.js';
import { SkewedClock } from './support/skewed-clock.js';
import type { Trial } from './trial.js';

const HOUR_MS = 3_600_000;
/** Clocks of the process that adds and of the one that works, in hours from the true time. */
const WRONG = [
  [0, 2],
  [0, -2],
  [2, 0],
  [-2, 0],
  [2, -2],
] as const;
const DELAY_S = 3;
/** Redis counts whole milliseconds. */
const TICK_S = 0.001;
/** How long a due job may wait for its worker on a busy machine. */
const LATE_S = 0.5;
const LEASE_S = 8;
const JOBS = 30;
/** Jobs that run when a worker is killed, and the slots of each worker. */
const HELD = 40;

/** Only the clock of Redis matters, no clock of a process, and it may jump. */
export const clocks: Trial = {
  name: 'clocks',
  what: 'clocks of producers and workers 2 h wrong, and the clock of Redis stepped by +90 s and by -1 h under load',
  times: 1,
  async run(lab) {
    const rounds = await Promise.all(WRONG.map(([producer, worker]) => ownClocks(lab, producer, worker)));
    const early = worst(rounds.map(({ early: s }) => s));
    lab.judge({
      what: 'clocks ±2 h wrong: delayed jobs and retries early by',
      value: early,
      unit: 's',
      atMost: TICK_S,
    });
    const late = worst(rounds.map(({ late: s }) => s));
    lab.judge({ what: 'clocks ±2 h wrong: late by', value: late, unit: 's', atMost: LATE_S });
    const wrong = rounds.filter(({ isExpiryRight }) => !isExpiryRight).length;
    lab.judge({ what: 'clocks ±2 h wrong: jobs expired wrongly, or not', value: wrong, equals: 0 });
    for (const [name, stepMs] of [
      ['+90 s', 90_000],
      ['-1 h', -HOUR_MS],
    ] as const) {
      await serverClock(lab, name, stepMs);
    }
  },
};

async function ownClocks(lab: Lab, producerHours: number, workerHours: number) {
  const store = await lab.store();
  const queue = (await lab.producer(store, 'work')).queue('work');
  const at = (hours: number) => ({ env: new SkewedClock(hours * HOUR_MS).env });
  const producer = await lab.worker(store, { ...at(producerHours), root: { role: 'producer' } });
  const worker = await lab.worker(store, { ...at(workerHours), concurrency: 50 });
  const waits: number[] = [];
  const waited = async (added: Promise<{ id: string }>, since: number) => {
    const { id } = await added;
    const { at: started } = await worker.first('started', (said) => said.id === id, { timeout: 30_000 });
    waits.push(secondsSince(since, started) - DELAY_S);
  };
  const add = (name: string, options: object): Promise<{ id: string }> =>
    producer.call('add', name, null, options);
  const delayed = Array.from({ length: JOBS }, () =>
    waited(add('quick', { delay: DELAY_S * 1_000 }), performance.now()),
  );
  // Its handler fails at once, and again after the backoff.
  const backoff = { type: 'fixed', delay: DELAY_S * 1_000, jitter: 0 };
  const { id } = await add('fail', { attempts: 2, backoff });
  const runs = worker.take(2, 'started', (said) => said.id === id, { timeout: 30_000 });
  const lasting = await add('quick', { expiresIn: '1h' });
  await worker.first('started', (said) => said.id === lasting.id, { timeout: 30_000 });
  await Promise.all(delayed);
  const [first, second] = await runs;
  waits.push((second!.ms - first!.ms) / 1_000 - DELAY_S);
  await emptied(queue);
  await queue.pause();
  const expiring = await add('quick', { expiresIn: 1_000 });
  await pause(1_500);
  await queue.resume();
  await emptied(queue);
  const job = await queue.get(expiring.id);
  const isExpiryRight = job?.state === 'dead' && job.failure?.reason === 'expired';
  await end(producer, worker);
  const early = Math.max(0, ...waits.map((wait) => -wait));
  const late = Math.max(0, ...waits);
  lab.say(
    `producer ${producerHours} h, worker ${workerHours} h: ${waits.length} waits, early ${early.toFixed(3)} s, late ${late.toFixed(3)} s`,
  );
  return { early, late, isExpiryRight };
}

async function serverClock(lab: Lab, name: string, stepMs: number): Promise<void> {
  const clock = new SkewedClock();
  const store = await lab.store({ env: clock.env });
  const { queue: handle, events } = await lab.producer(store, 'work');
  const queue = handle('work');
  const stalled = collect(events.ofType('work', 'stalled'));
  await events.ready('work');
  const workers = [
    await lab.worker(store, { concurrency: HELD }),
    await lab.worker(store, { concurrency: HELD }),
  ];
  const producer = await lab.worker(store, { root: { role: 'producer' } });
  const slow = Array.from({ length: 20 }, () => ({ name: 'sleep', data: 3_000 }));
  await queue.addBulk(slow);
  await producer.call('flood', { perSecond: 200, name: 'count' });
  await pause(2_000);
  const since = performance.now();
  clock.set(stepMs);
  await goesOn(workers, since);
  const pauseS = worst(workers.flatMap((one) => one.all('gap').map(({ ms }) => ms / 1_000)).concat(0));
  await pause(LEASE_S * 1_000);
  const words = (await producer.ask({ timeout: 30_000 }, 'ebb')) as Record<string, any>;
  await emptied(queue);
  const runs = await Promise.all(workers.map((one) => one.call('tally', words.made)));
  const total = runs.reduce((all, one) => all + one.runs, 0);
  lab.say(
    `Redis ${name}: ${words.made} adds, ${words.stored} stored, ${total} runs, pause ${pauseS.toFixed(2)} s`,
  );
  lab.judge({
    what: `Redis ${name}: acknowledged jobs lost`,
    value: Math.max(0, words.stored - total),
    equals: 0,
  });
  lab.judge({ what: `Redis ${name}: false recoveries`, value: stalled.values.length });
  lab.judge({ what: `Redis ${name}: the longest pause of work above 0.4 s`, value: pauseS, unit: 's' });
  await recoversAfter(lab, name, queue, workers);
  await end(producer, ...workers);
}

/** Resolves when each of them has run a new job. */
async function goesOn(workers: readonly AppProcess[], since: number): Promise<void> {
  const runs = async () =>
    (await Promise.all(workers.map((one) => one.call('tally', 0)))) as { runs: number }[];
  const before = await runs();
  const isOn = async () => (await runs()).every((one, i) => one.runs > before[i]!.runs + 20);
  await until(isOn, { timeout: 60_000, what: `all work again ${secondsSince(since)} s after the step` });
}

/** No lease is stuck: another worker runs the jobs of a worker that dies now. */
async function recoversAfter(
  lab: Lab,
  name: string,
  queue: { addBulk(jobs: { name: string; data: unknown }[]): Promise<unknown> },
  workers: readonly AppProcess[],
): Promise<void> {
  await queue.addBulk(Array.from({ length: HELD }, () => ({ name: 'hold', data: null })));
  const held = (one: AppProcess) => one.all('started').length - one.all('ended').length;
  const all = () => workers.reduce((total, one) => total + held(one), 0);
  await until(() => all() === HELD, { timeout: 30_000 });
  const [victim, heir] = workers.toSorted((a, b) => held(b) - held(a));
  const lost = held(victim!);
  const since = performance.now();
  victim!.kill('SIGKILL');
  await until(() => held(heir!) === HELD, {
    timeout: 300_000,
    what: 'the jobs of the killed worker run again',
  });
  lab.judge({
    what: `Redis ${name}, then a worker with ${lost} jobs killed: all run again`,
    value: secondsSince(since),
    unit: 's',
    atMost: 2 * LEASE_S,
  });
}
