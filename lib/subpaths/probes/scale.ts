import { InvalidQueueNameError, UnknownQueueError } from '../../errors.js';
import { quoted } from '../../job/text.js';
import type { QueueInfo, QueueInspector, WorkerInfo } from '../../inspect/queue-inspector.js';
import { FORBIDDEN, isAllowed, type Answer, type Route } from './http-server.js';

const PATH = /^\/scale\/([^/]+)$/;

/** How many jobs there are to run, for an autoscaler such as KEDA: `/scale/<queue>`. */
export function scaleRoute(
  inspector: Pick<QueueInspector, 'queues' | 'workers'>,
  token: string | undefined,
): Route {
  return (path, request, query) => {
    const queue = PATH.exec(path)?.[1];
    if (queue === undefined) return undefined;
    if (!isAllowed(request, token)) return FORBIDDEN;
    const fault = faultIn(query);
    if (fault !== undefined) return { status: 400, body: { error: fault } };
    return scale(inspector, queue, query.get('concurrency'));
  };
}

/** A misspelt field would change the number of processes without a word. */
function faultIn(query: URLSearchParams): string | undefined {
  const unknown = [...query.keys()].find((name) => name !== 'concurrency');
  if (unknown !== undefined)
    return `the query has ${quoted(unknown.slice(0, 60))}; it takes only concurrency`;
  return query.size > 1 ? 'the query has concurrency twice' : undefined;
}

async function scale(
  inspector: Pick<QueueInspector, 'queues' | 'workers'>,
  queue: string,
  given: string | null,
): Promise<Answer> {
  if (given !== null && !/^[1-9]\d{0,4}$/.test(given))
    return {
      status: 400,
      body: { error: `concurrency must be a whole number from 1 to 99999, got ${given}` },
    };
  let info: QueueInfo;
  let workers: readonly WorkerInfo[];
  try {
    const [queues, all] = await Promise.all([inspector.queues([queue]), inspector.workers({ queue })]);
    [info, workers] = [queues[0]!, all];
  } catch (error) {
    const isWrong = error instanceof InvalidQueueNameError || error instanceof UnknownQueueError;
    return isWrong
      ? { status: 404, body: { error: `there is no queue ${quoted(queue)}` } }
      : { status: 503, body: { error: (error as Error).message } };
  }
  const { waiting, active } = info.counts;
  const stopping = workers.filter(({ state }) => state === 'draining');
  // A process that stops ends its jobs itself. A new one would find nothing to do.
  const leaving = stopping.flatMap(({ pools }) => pools.flatMap(({ jobs }) => jobs)).length;
  const staying = workers.filter((worker) => !stopping.includes(worker));
  const pools = staying.flatMap((worker) => worker.pools);
  // The pool of the queue may be left out of the report of a process that has very many.
  const shown = staying.filter((worker) => worker.pools.length > 0).length;
  const slots = pools.reduce((sum, { concurrency }) => sum + concurrency, 0);
  const perProcess = given === null ? Math.max(1, Math.round(slots / Math.max(1, shown))) : Number(given);
  // Running jobs of a paused queue go on. If their process were stopped, they would run again.
  const backlog = (info.paused ? 0 : waiting) + Math.max(0, active - leaving);
  return {
    status: 200,
    body: {
      queue,
      backlog,
      waiting,
      active,
      paused: info.paused,
      oldestSeconds: Math.round((info.oldestWaitingMs ?? 0) / 1000),
      processes: staying.length,
      slots,
      wanted: Math.ceil(backlog / perProcess),
    },
  };
}
