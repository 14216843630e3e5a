import { setTimeout as sleep } from 'node:timers/promises';
import { payload, type Session } from '../contender.js';
import { contenders } from '../contenders/index.js';
import { now } from '../measure/clock.js';
import { BATCH, range } from '../measure/produce.js';
import { timetable } from '../measure/timetable.js';
import { QUEUE } from '../scenario.js';
import { serve } from './serve.js';

/** An application of a contender that only adds, in a process of its own. */
export type ProducerActs = typeof acts;

let session: Session;

const acts = {
  async open({ contender, url }: { contender: string; url: string }): Promise<void> {
    session = await (await contenders[contender]!()).open({ url, queues: [QUEUE] });
  },

  /** Adds jobs `from` to `to - 1` so that all become due at one moment of `now()`; answers when the last was added. */
  async addDueAt({ from, to, dueAt }: { from: number; to: number; dueAt: number }): Promise<number> {
    for (let at = from; at < to; at += BATCH) {
      const delayMs = Math.ceil(dueAt - now());
      if (delayMs < 1) throw new Error(`jobs were due before job ${at} was added`);
      await session.addBulk(QUEUE, range(at, Math.min(to, at + BATCH)), { delayMs });
    }
    return now();
  },

  /** Adds jobs `from` to `to - 1` one by one with pauses of 3 to 7 ms; answers when each call was made. */
  async addWithPauses({ from, to }: { from: number; to: number }): Promise<Float64Array<ArrayBuffer>> {
    const called = new Float64Array(to - from);
    for (let n = from; n < to; n++) {
      // Long enough for the worker to settle and block again; uneven, so as not to beat in time with a poll of its own.
      await sleep(3 + (n % 5));
      called[n - from] = now();
      await session.add(QUEUE, payload(n));
    }
    return called;
  },

  /** Adds job `from + i` at `startAt + i · everyMs`, whether or not those before are through; answers when each call was made. */
  async addOnTime({
    from,
    to,
    startAt,
    everyMs,
  }: {
    from: number;
    to: number;
    startAt: number;
    everyMs: number;
  }): Promise<Float64Array<ArrayBuffer>> {
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
