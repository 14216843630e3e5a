import { RedisRefusedError } from '#lib/errors.js';
import { emptied, end } from './lab.js';
import type { Trial } from './trial.js';

const ADDS = 100;
const CHUNK = 1_000;
const BELOW_USE = 1_000_000;

/** A full Redis refuses new work with a typed error and lets old work end. */
export const maxmemory: Trial = {
  name: 'maxmemory',
  what: 'maxmemory is set below what is used: adds are refused, the backlog drains',
  times: 1,
  jobs: 20_000,
  async run(lab) {
    const store = await lab.store();
    const queue = (await lab.producer(store, 'work')).queue('work');
    const data = { n: 0, text: 'x'.repeat(500) };
    for (let first = 0; first < lab.jobs; first += CHUNK) {
      const length = Math.min(CHUNK, lab.jobs - first);
      await queue.addBulk(
        Array.from({ length }, (_, i) => ({ name: 'count', data: { ...data, n: first + i } })),
      );
    }
    const used = Number(/used_memory:(\d+)/.exec(await store.admin.info('memory'))![1]);
    await store.admin.config('SET', 'maxmemory', used - BELOW_USE);
    let refused = 0;
    for (let i = 0; i < ADDS; i++) {
      const error = await queue.add('count', { ...data, n: lab.jobs + i }).catch((reason: unknown) => reason);
      if (error instanceof RedisRefusedError && error.reply === 'OOM' && error.applied === 'no') refused += 1;
    }
    lab.judge({ what: `adds refused as RedisRefusedError, of ${ADDS}`, value: refused, equals: ADDS });
    const worker = await lab.worker(store, { concurrency: 50 });
    await emptied(queue);
    const { runs, never, twice, ran } = (await worker.call(
      'tally',
      lab.jobs,
      Array.from({ length: ADDS }, (_, i) => lab.jobs + i),
    )) as { runs: number; never: number; twice: number; ran: number[] };
    const drained = ((lab.jobs - never) / lab.jobs) * 100;
    lab.judge({ what: `of a backlog of ${lab.jobs} drained`, value: drained, unit: '%', equals: 100 });
    lab.judge({ what: 'refused jobs that ran, and jobs run twice', value: ran.length + twice, equals: 0 });
    lab.say(`${runs} runs; ${used} bytes used when the limit was set ${BELOW_USE} below`);
    await end(worker);
  },
};
