import { besides } from '../measure/besides.js';
import type { Lab } from '../scenario.js';
import { Companion } from './companion.js';
import type { ProducerActs, WorkerActs, WorkerOpening } from './acts.js';
import type { ProxyActs } from './proxy.js';

const PRODUCER = besides(import.meta.url, 'producer');
const PROXY = besides(import.meta.url, 'proxy');
const WORKER = besides(import.meta.url, 'worker');

/** Starts another process with an application of the contender that only adds. */
export async function startProducer({ contender, url }: Lab): Promise<Companion<ProducerActs>> {
  const producer = await Companion.start<ProducerActs>(PRODUCER);
  await producer.ask('open', { contender: contender.name, url });
  return producer;
}

/** Starts this many worker processes. All are ready, and none has finished a job. */
export async function startWorkers(
  { contender, url }: Lab,
  count: number,
  opening: Omit<WorkerOpening, 'contender' | 'url'>,
): Promise<Companion<WorkerActs>[]> {
  const workers = await Promise.all(Array.from({ length: count }, () => Companion.start<WorkerActs>(WORKER)));
  await Promise.all(
    workers.map((worker) => worker.ask('open', { contender: contender.name, url, ...opening })),
  );
  return workers;
}

export function startProxy(): Promise<Companion<ProxyActs>> {
  return Companion.start<ProxyActs>(PROXY);
}
