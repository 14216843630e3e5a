import { setTimeout as pause } from 'node:timers/promises';
import type { EnqueueCall, EnqueueJob, ExchangeCall, QueueEngine } from '#lib/contract/engine.js';
import type { SettledRun } from '#lib/job/outcome.js';

interface Sabotage {
  /** The promise that the checker must find broken. */
  readonly breaks: string;
  /** How long it takes until it shows, in ms. */
  readonly afterMs?: number;
  /** How many runs it may take, if a run meets it only by chance. @default 1 */
  readonly runs?: number;
  /** Makes the engine a worse one. */
  readonly mutate: (engine: QueueEngine) => void;
}

/** Engines that each break one promise. Where a call is hit, every third is, so that a queue still works for the most part. */
export const SABOTAGES: Readonly<Record<string, Sabotage>> = {
  'acknowledges adds that it does not store': {
    breaks: 'not lost',
    mutate: (engine) => {
      const isStored = twoOfThree();
      changeAdds(engine, (jobs) => jobs.filter(isStored));
    },
  },
  'acknowledges outcomes that it does not store': {
    breaks: 'settled once',
    mutate: (engine) => {
      const isStored = twoOfThree();
      changeSettled(engine, (runs) => runs.filter(isStored));
    },
  },
  'stores a second job under an id that is taken': {
    breaks: 'linearizable',
    mutate: (engine) => {
      const enqueue = engine.enqueue.bind(engine);
      engine.enqueue = async (queue, call) => {
        for (const { id } of call.jobs) await engine.admin.remove(queue, id);
        return enqueue(queue, call);
      };
    },
  },
  'says of new jobs that they are duplicates': {
    breaks: 'linearizable',
    mutate: (engine) => {
      const enqueue = engine.enqueue.bind(engine);
      engine.enqueue = async (queue, call) => {
        const answer = await enqueue(queue, call);
        if (answer.kind === 'stale') return answer;
        const own = call.jobs.filter(({ hasOwnId }) => hasOwnId);
        return { ...answer, duplicates: own.map(({ id }) => ({ id, state: 'waiting' as const })) };
      };
    },
  },
  'acknowledges a cancel that it does not do': {
    breaks: 'linearizable',
    mutate: ({ admin }) => {
      const cancel = admin.cancel.bind(admin);
      admin.cancel = async (queue, id, reason) =>
        isWaiting(await admin.get(queue, id)) ? 'cancelled' : cancel(queue, id, reason);
    },
  },
  'acknowledges a remove that it does not do': {
    breaks: 'linearizable',
    mutate: ({ admin }) => {
      const remove = admin.remove.bind(admin);
      admin.remove = async (queue, id) =>
        isWaiting(await admin.get(queue, id)) ? 'removed' : remove(queue, id);
    },
  },
  'answers the read of a job with nothing': {
    breaks: 'linearizable',
    mutate: ({ admin }) => {
      const get = admin.get.bind(admin);
      let reads = 0;
      admin.get = async (queue, id) => (++reads % 3 === 0 ? null : get(queue, id));
    },
  },
  'runs delayed jobs at once': {
    breaks: 'not early',
    mutate: (engine) =>
      changeAdds(engine, (jobs) => jobs.map(({ delayMs: _, dueAt: __, ...job }): EnqueueJob => job)),
  },
  'takes no notice of priorities': {
    breaks: 'ordered',
    mutate: (engine) => changeAdds(engine, (jobs) => jobs.map(({ priority: _, ...job }): EnqueueJob => job)),
  },
  'runs paused queues': {
    breaks: 'paused',
    // A pause takes 50 ms at most, and on a busy machine no job may begin in it.
    runs: 3,
    mutate: ({ admin }) => {
      admin.pause = async () => true;
    },
  },
  'pauses before what was claimed has started': {
    breaks: 'paused',
    runs: 3,
    mutate: (engine) => {
      const exchange = engine.exchange.bind(engine);
      engine.exchange = async (queue, call) => {
        const answer = await exchange(queue, call);
        await pause(30);
        return answer;
      };
      const { admin } = engine;
      const counts = admin.counts.bind(admin);
      admin.counts = async (queue) => ({ ...(await counts(queue)), active: 0 });
    },
  },
  'tries again at once': {
    breaks: 'not early',
    mutate: (engine) =>
      changeSettled(engine, (runs) =>
        runs.map((run) =>
          run.outcome.kind === 'retried' ? { ...run, outcome: { ...run.outcome, delayMs: 0 } } : run,
        ),
      ),
  },
  'tries jobs again that have no attempts left': {
    breaks: 'attempts kept',
    mutate: (engine) =>
      changeSettled(engine, (runs) =>
        runs.map((run) =>
          run.outcome.kind === 'dead' && run.attempt < 5
            ? {
                ...run,
                outcome: {
                  kind: 'retried',
                  delayMs: 0,
                  priority: 0,
                  counted: true,
                  failure: run.outcome.failure,
                },
              }
            : run,
        ),
      ),
  },
  'keeps another result': {
    breaks: 'right result',
    mutate: (engine) =>
      changeSettled(engine, (runs) =>
        runs.map((run) =>
          run.outcome.kind === 'completed' && run.outcome.keep
            ? { ...run, outcome: { kind: 'completed', keep: { ...run.outcome.keep, result: '1' } } }
            : run,
        ),
      ),
  },
  'leaves occurrences of schedules out': {
    breaks: 'one job for each occurrence',
    afterMs: 3_500,
    mutate: ({ schedules }) => {
      const fire = schedules.fire.bind(schedules);
      let fired = 0;
      schedules.fire = (queue, calls) =>
        fire(queue, ++fired % 2 === 0 ? calls.map((call) => ({ ...call, jobs: [] })) : calls);
    },
  },
};

function isWaiting(job: { readonly state: string } | null): boolean {
  return job?.state === 'waiting' || job?.state === 'delayed';
}

/** Leaves every third out. */
function twoOfThree(): () => boolean {
  let nth = 0;
  return () => ++nth % 3 !== 0;
}

function changeAdds(
  engine: QueueEngine,
  change: (jobs: readonly EnqueueJob[]) => readonly EnqueueJob[],
): void {
  const enqueue = engine.enqueue.bind(engine);
  engine.enqueue = async (queue, call: EnqueueCall) => {
    const jobs = change(call.jobs);
    return jobs.length === 0 ? { kind: 'stored', duplicates: [] } : enqueue(queue, { ...call, jobs });
  };
}

function changeSettled(
  engine: QueueEngine,
  change: (settled: readonly SettledRun[]) => readonly SettledRun[],
): void {
  const exchange = engine.exchange.bind(engine);
  engine.exchange = (queue, call: ExchangeCall) =>
    exchange(queue, { ...call, settled: change(call.settled) });
}
