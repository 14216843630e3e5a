import { setTimeout as pause } from 'node:timers/promises';
import { collect } from '../support/wait.js';
import { emptied, end, type Lab } from './lab.js';
import type { Trial } from './trial.js';

const WORKERS = 3;
const PER_SECOND = 500;
const WORK_MS = 5;
const PHASE_MS = 20_000;

/** The death of one worker does not delay the jobs of the others. */
export const tail: Trial = {
  name: 'tail',
  what: `SIGKILL of one of ${WORKERS} workers under load: how long the jobs of the others wait for their start`,
  times: 3,
  async run(lab) {
    const pairs: { calm: number; kill: number }[] = [];
    for (let i = 0; i < lab.times; i++) {
      const calm = await phase(lab, false);
      const kill = await phase(lab, true);
      lab.say(`${i + 1}: p99 ${calm.toFixed(2)} ms without a fault, ${kill.toFixed(2)} ms around a kill`);
      pairs.push({ calm, kill });
    }
    const middle = pairs.map(({ calm, kill }) => kill / calm).toSorted((a, b) => a - b)[pairs.length >> 1]!;
    const calm = pairs.map((pair) => pair.calm).toSorted((a, b) => a - b)[pairs.length >> 1]!;
    lab.judge({ what: 'p99 from add to start without a fault, median', value: calm, unit: 'ms' });
    lab.judge({
      what: 'p99 around a kill, as a multiple of it, median',
      value: middle,
      unit: '×',
      atMost: 2,
    });
  },
};

/** The 99th percentile of the waits, without the jobs that the dead worker ran. */
async function phase(lab: Lab, isKilled: boolean): Promise<number> {
  const store = await lab.store();
  const { queue: handle, events } = await lab.producer(store, 'work');
  const queue = handle('work');
  const stalled = collect(events.ofType('work', 'stalled'));
  await events.ready('work');
  const workers = [];
  for (let i = 0; i < WORKERS; i++) workers.push(await lab.worker(store, { concurrency: 10 }));
  const producer = await lab.worker(store, { root: { role: 'producer' } });
  const start = (perSecond: number) => producer.call('flood', { perSecond, name: 'clock', work: WORK_MS });
  await start(PER_SECOND);
  // The first jobs compile and connect. They are not measured.
  await pause(3_000);
  await producer.ask({ timeout: 30_000 }, 'ebb');
  await emptied(queue);
  for (const worker of workers) await worker.call('forget');
  await start(PER_SECOND);
  await pause(PHASE_MS / 4);
  if (isKilled) workers[0]!.kill('SIGKILL');
  await pause((PHASE_MS * 3) / 4);
  await producer.ask({ timeout: 30_000 }, 'ebb');
  await emptied(queue);
  const alive = isKilled ? workers.slice(1) : workers;
  const waits = (
    await Promise.all(alive.map((one) => one.call('latencies') as Promise<[number, number][]>))
  ).flat();
  const orphans = stalled.values.length;
  await end(producer, ...workers);
  // Jobs of the dead worker waited for the end of its lease. They waited longest by far.
  const others = waits.map(([, ms]) => ms).toSorted((a, b) => a - b);
  others.length -= orphans;
  return others[Math.floor(others.length * 0.99)]!;
}
