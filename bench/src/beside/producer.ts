import { setTimeout as sleep } from 'node:timers/promises';
import { payload, type Session } from '../contender.js';
import { contenders } from '../contenders/index.js';
import { now } from '../measure/clock.js';
import { BATCH, range } from '../measure/produce.js';
import { QUEUE } from '../scenario.js';
import type { ProducerActs } from './acts.js';
import { serve } from './serve.js';
import { Alarm } from '../measure/alarm.js';

let session: Session;

/** In a process of its own. */
const acts: ProducerActs = {
  async open({ contender, url }) {
    session = await (await contenders[contender]!()).open({ url, queues: [QUEUE] });
  },

  async addDueAt({ from, to, dueAt }) {
    for (let at = from; at < to; at += BATCH) {
      const delayMs = Math.ceil(dueAt - now());
      if (delayMs < 1) throw new Error(`jobs were due before job ${at} was added`);
      await session.addBulk(QUEUE, range(at, Math.min(to, at + BATCH)), { delayMs });
    }
    return now();
  },

  async addWithPauses({ from, to, pauseFrom }) {
    const called = new Float64Array(to - from);
    for (let n = from; n < to; n++) {
      // Long enough for the worker to settle and block again. Random, so that it does not coincide with polling.
      if (n >= pauseFrom) await sleep(3 + (n % 5));
      called[n - from] = now();
      await session.add(QUEUE, payload(n));
    }
    return called;
  },

  async addOnTime({ from, to, startAt, everyMs }) {
    const called = new Float64Array(to - from);
    const added: Promise<unknown>[] = [];
    await timetable(to - from, startAt, everyMs, (i) => {
      called[i] = now();
      added.push(session.add(QUEUE, payload(from + i)));
    });
    await Promise.all(added);
    return called;
  },

  close: () => session.close(),
};

serve(acts);

/** Calls `depart(i)` at `startAt + i · everyMs`, however long earlier calls take. Late calls are made at once. */
async function timetable(
  count: number,
  startAt: number,
  everyMs: number,
  depart: (i: number) => void,
): Promise<void> {
  let next = 0;
  let arrived!: () => void;
  const end = new Promise<void>((resolve) => (arrived = resolve));
  const alarm = new Alarm(() => {
    while (next < count && startAt + next * everyMs <= now()) depart(next++);
    if (next < count) alarm.set(startAt + next * everyMs);
    else arrived();
  });
  alarm.set(startAt);
  await end;
  await alarm.close();
}
