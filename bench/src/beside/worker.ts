import type { Payload, Session } from '../contender.js';
import { contenders } from '../contenders/index.js';
import { Arrivals } from '../measure/arrivals.js';
import { settled } from '../measure/wait.js';
import { QUEUE } from '../scenario.js';
import { serve } from './serve.js';

/** An application of a contender that works off the queue, in a process of its own. Its first jobs wait until all may go. */
export type WorkerActs = typeof acts;

/** What one process did. */
export interface WorkerRecord {
  /** When each job was handled here, by `now()`; 0 for those handled elsewhere. */
  readonly at: Float64Array<ArrayBuffer>;
  /** CPU time of the process from `go` on, all threads, in microseconds. */
  readonly cpuUs: number;
}

let session: Session;
let arrivals: Arrivals;
let open = false;
let go!: () => void;
let cpuBefore: NodeJS.CpuUsage;
const mayGo = new Promise<void>((resolve) => (go = resolve));

const acts = {
  async open({ contender, url, jobs, concurrency }: Opening): Promise<void> {
    arrivals = new Arrivals(jobs);
    session = await (
      await contenders[contender]!()
    ).open({ url, queues: [QUEUE], work: { concurrency, handle } });
  },

  go(): void {
    cpuBefore = process.cpuUsage();
    open = true;
    go();
  },

  handled: (): number => arrivals.count,

  /** Once every job of the queue is acknowledged. */
  async record(): Promise<WorkerRecord> {
    await settled(session);
    arrivals.check();
    const { user, system } = process.cpuUsage(cpuBefore);
    return { at: arrivals.at, cpuUs: user + system };
  },

  close: () => session.close(),
};

interface Opening {
  readonly contender: string;
  readonly url: string;
  /** In all processes together. */
  readonly jobs: number;
  readonly concurrency: number;
}

function handle(data: Payload): unknown {
  return open ? arrivals.handle(data) : mayGo.then(() => arrivals.handle(data));
}

serve(acts);
