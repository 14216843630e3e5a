import { Handle } from '#lib/decorators/handle.decorator.js';
import { getQueueToken } from '#lib/decorators/metadata.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { RedisUnavailableError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import type { Queue } from '#lib/producer/queue.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { bootApp } from '../support/app.js';
import { startCut, type Cut } from '../support/cut.js';
import { collect, until } from '../support/wait.js';
import { PREFIX, emptied, end, repeat, sum, type Lab } from './lab.js';
import type { Trial } from './trial.js';

/** Connections at once. Each has an application behind it. */
const LINES = 16;
const ADD_MS = 5_000;
/** Too short for a repetition, so some adds end without an answer. */
const HASTY_MS = 30;
/** Bytes of the smallest call in each direction. A cut at any of these bytes comes before its end. */
const ADD_BYTES = { up: 600, down: 22 };
const EXCHANGE_BYTES = { up: 800, down: 140 };
const CHUNK = 1_000;

/** A connection that breaks at any byte neither loses nor doubles a call. */
export const cuts: Trial = {
  name: 'cuts',
  what: 'so many adds, claims and settlements, each with its connection cut at a random byte in either direction',
  times: 1,
  jobs: 10_000,
  async run(lab) {
    await cutAdds(lab);
    await cutExchanges(lab);
  },
};

/** The connection breaks somewhere in the next call, and sometimes also in its repetition. */
function arm(cut: Cut, bytes: { up: number; down: number }): void {
  cut.faults.clear();
  const direction = Math.random() < 0.5 ? 'up' : 'down';
  cut.cutAfterBytes(direction, 1 + Math.floor(Math.random() * bytes[direction]));
  if (Math.random() < 0.2) cut.cutAfterBytes('up', 1 + Math.floor(Math.random() * 4 * bytes.up));
}

async function cutAdds(lab: Lab): Promise<void> {
  const store = await lab.store();
  const direct = (await lab.producer(store, 'work')).queue('work');
  // Jobs run and are gone at once, so that a second add of the same id would be a new job.
  const worker = await lab.worker(store, { concurrency: 100 });
  const lines = await repeat(LINES, LINES, async (i) => {
    const enqueueTimeout = i % 8 === 0 ? HASTY_MS : ADD_MS;
    const cut = await startCut(store.server.url);
    const connection = cut.url;
    const root = QueueModule.forRoot({ connection, prefix: PREFIX, role: 'producer', enqueueTimeout });
    const { get, close } = await bootApp({ imports: [root, QueueModule.registerQueue({ name: 'work' })] });
    return { cut, queue: get<Queue>(getQueueToken('work')), close, enqueueTimeout };
  });
  const refused: number[] = [];
  const unknown: number[] = [];
  const overdue: number[] = [];
  await repeat(LINES, LINES, async (i) => {
    const { cut, queue, enqueueTimeout } = lines[i]!;
    for (let n = i; n < lab.jobs; n += LINES) {
      cut.faults.clear();
      // The connection is up when the cut is set. For some of those with a short timeout it is still down, and their
      // call is never sent.
      if (enqueueTimeout === ADD_MS || Math.floor(n / LINES) % 2 === 0) await until(() => queue.counts());
      arm(cut, ADD_BYTES);
      const since = performance.now();
      try {
        await queue.add('count', { n });
      } catch (error) {
        if (!(error instanceof RedisUnavailableError)) throw error;
        (error.applied === 'no' ? refused : unknown).push(n);
      }
      overdue.push(performance.now() - since - enqueueTimeout);
    }
  });
  for (const { cut } of lines) await cut.heal();
  await emptied(direct);
  const doubtful = [...refused, ...unknown];
  const tally = (await worker.call('tally', lab.jobs, doubtful)) as Record<string, any>;
  const isRefused = new Set(refused);
  lab.say(
    `adds: ${sum(lines.map(({ cut }) => cut.counters.cuts))} cuts, ${lab.jobs - doubtful.length} stored, ` +
      `${refused.length} 'no', ${unknown.length} 'unknown', of which ${tally.ran.length} were stored`,
  );
  lab.judge({ what: `of ${lab.jobs} adds cut: jobs run twice`, value: tally.twice, equals: 0 });
  const lost = tally.never - (doubtful.length - tally.ran.length);
  lab.judge({ what: 'acknowledged jobs lost', value: lost, equals: 0 });
  const broken = tally.ran.filter((n: number) => isRefused.has(n)).length;
  lab.judge({ what: "jobs that ran though their add said 'no'", value: broken, equals: 0 });
  const late = overdue.filter((ms) => ms > 1_000).length;
  lab.judge({ what: 'promises older than their deadline and a second', value: late, equals: 0 });
  await Promise.all(lines.map(({ close }) => close()));
  await end(worker);
}

async function cutExchanges(lab: Lab): Promise<void> {
  const store = await lab.store();
  const { queue: handle, events } = await lab.producer(store, 'work');
  const direct = handle('work');
  const stalled = collect(events.ofType('work', 'stalled'));
  await events.ready('work');
  const runs = new Uint8Array(lab.jobs);
  for (let first = 0; first < lab.jobs; first += CHUNK) {
    const length = Math.min(CHUNK, lab.jobs - first);
    await direct.addBulk(Array.from({ length }, (_, i) => ({ name: 'one', data: { n: first + i } })));
  }
  const lines = await repeat(LINES, LINES, async () => {
    const cut = await startCut(store.server.url);
    // With one slot the exchange that settles a job also claims the next.
    @Processor('work', { concurrency: 1 })
    class Cutting {
      @Handle()
      run(job: Job<{ n: number }>): void {
        runs[job.data.n]! += 1;
        arm(cut, EXCHANGE_BYTES);
      }
    }
    const root = QueueModule.forRoot({ connection: cut.url, prefix: PREFIX, role: 'worker' });
    const imports = [root, QueueModule.registerQueue({ name: 'work' })];
    const { close } = await bootApp({ imports, providers: [Cutting] });
    return { cut, close };
  });
  await emptied(direct, 600_000);
  for (const { cut } of lines) await cut.heal();
  const settled = (await direct.stats()).total.processed;
  lab.say(
    `exchanges: ${sum(lines.map(({ cut }) => cut.counters.cuts))} cuts, ${stalled.values.length} false recoveries`,
  );
  const claims = runs.filter((times) => times !== 1).length;
  lab.judge({ what: `of ${lab.jobs} claims cut: jobs run twice or never`, value: claims, equals: 0 });
  lab.judge({
    what: `of ${lab.jobs} settlements cut: not counted exactly once`,
    value: Math.abs(lab.jobs - settled),
    equals: 0,
  });
  await Promise.all(lines.map(({ close }) => close()));
}
