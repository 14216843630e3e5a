import type { Payload, Session } from '../contender.js';
import { contenders } from '../contenders/index.js';
import { Arrivals } from '../measure/arrivals.js';
import { settled } from '../measure/wait.js';
import { QUEUE } from '../scenario.js';
import type { WorkerActs } from './acts.js';
import { serve } from './serve.js';

let session: Session;
let arrivals: Arrivals;
let open = false;
let go!: () => void;
let cpuBefore: NodeJS.CpuUsage;
const mayGo = new Promise<void>((resolve) => (go = resolve));

/** In a process of its own. */
const acts: WorkerActs = {
  async open({ contender, url, jobs, concurrency, rate }) {
    arrivals = new Arrivals(jobs);
    session = await (
      await contenders[contender]!()
    ).open({ url, queues: [QUEUE], rate, work: { concurrency, handle } });
  },

  go() {
    cpuBefore = process.cpuUsage();
    open = true;
    go();
  },

  handled: () => arrivals.count,

  async record() {
    await settled(session);
    arrivals.check();
    const { user, system } = process.cpuUsage(cpuBefore);
    return { at: arrivals.at, cpuUs: user + system };
  },

  close: () => session.close(),
};

function handle(data: Payload): unknown {
  return open ? arrivals.handle(data) : mayGo.then(() => arrivals.handle(data));
}

serve(acts);
