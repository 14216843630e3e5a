import type { Redis } from 'ioredis';
import type { Companion } from '../beside/companion.js';
import type { ProducerActs } from '../beside/acts.js';
import { startProducer } from '../beside/start.js';
import type { Session } from '../contender.js';
import { Arrivals } from '../measure/arrivals.js';
import { now } from '../measure/clock.js';
import { warmUpFor } from '../measure/produce.js';
import { meterRedis, parseInfo } from '../measure/redis-info.js';
import { quantile } from '../measure/stats.js';
import { settled } from '../measure/wait.js';
import { QUEUE, type Lab, type Scenario } from '../scenario.js';

const CONCURRENCY = 100;
/** Allowed beyond the time that adding should take by what was seen before: the moment must not come before all are added. */
const MARGIN = 1.5;
const QUIET_MS = 1_000;
/** So many show how long adding takes. */
const PROBE = 100;
/** Some move only a few due jobs at a time; after this time the rest no longer matters. */
const LIMIT_MS = 20_000;

/** Another process delays many jobs to one moment. An idle worker waits for them. */
export const delayedDue: Scenario = {
  name: 'delayed-due',
  title: `delayed jobs, all due at one moment, no-op handler, concurrency ${CONCURRENCY}`,
  needs: ['delays'],
  figures: [
    { key: 'perSecond', title: 'throughput from that moment on', unit: 'jobs/s', better: 'more' },
    { key: 'started', title: `started within ${LIMIT_MS / 1_000} s`, unit: '%', better: 'more' },
    { key: 'first', title: 'first start after it', unit: 'ms', better: 'less' },
    { key: 'p50', title: 'start after it, p50', unit: 'ms', better: 'less' },
    { key: 'p99', title: 'start after it, p99', unit: 'ms', better: 'less' },
    { key: 'longest', title: 'longest call in Redis', unit: 'ms', better: 'less' },
    { key: 'redisCpu', title: 'Redis CPU per job', unit: 'µs', better: 'less' },
    { key: 'commands', title: 'Redis commands per job, those in scripts too', unit: '', better: 'less' },
    { key: 'processCpu', title: 'worker CPU per job', unit: 'µs', better: 'less' },
  ],
  async measure(lab) {
    const warmUp = warmUpFor(lab.jobs);
    const all = warmUp + lab.jobs;
    const arrivals = new Arrivals(all, lab.progress);
    const session = await lab.contender.open({
      url: lab.url,
      queues: [QUEUE],
      work: { concurrency: CONCURRENCY, handle: arrivals.handle },
    });
    const rig = { lab, arrivals, session, producer: await startProducer(lab) };
    const probe = Math.min(PROBE, Math.ceil(warmUp / 10));
    const cold = await runDue(rig, 0, probe, 1);
    const warm = await runDue(rig, probe, warmUp, cold.msPerJob);
    // A contender that does not finish the warm-up is measured by the warm-up.
    const measured = warm.isDone ? await runDue(rig, warmUp, all, warm.msPerJob) : warm;
    await rig.producer.ask('close');
    await rig.producer.end();
    if (measured.isDone) await session.close();
    return measured.figures;
  },
};

interface Rig {
  readonly lab: Lab;
  readonly arrivals: Arrivals;
  readonly session: Session;
  readonly producer: Companion<ProducerActs>;
}

interface DueRun {
  readonly figures: Record<string, number>;
  /** All were started and are acknowledged. */
  readonly isDone: boolean;
  /** How long adding one job took. */
  readonly msPerJob: number;
}

/** Adds jobs `from` to `to - 1`, all due at one moment that leaves time to add them, and waits for them. */
async function runDue(rig: Rig, from: number, to: number, msPerJob: number): Promise<DueRun> {
  const { lab, arrivals, session, producer } = rig;
  const calledAt = now();
  const dueAt = calledAt + (to - from) * msPerJob * MARGIN + QUIET_MS;
  const addedAt = await producer.ask('addDueAt', { from, to, dueAt });
  lab.progress(to, arrivals.at.length * 2);

  const longest = await watchCalls(lab.control);
  const redis = await meterRedis(lab.control);
  const cpuBefore = process.cpuUsage();
  await arrivals.reached(to, dueAt + LIMIT_MS - now());
  const { user, system } = process.cpuUsage(cpuBefore);
  const isDone = arrivals.count === to;
  if (isDone) await settled(session);
  const spent = await redis();

  const at = Array.from(arrivals.at.subarray(from, to));
  const late = at.map((started) => (started === 0 ? LIMIT_MS : started - dueAt));
  const started = at.filter((one) => one > 0).length;
  if (started === 0) throw new Error(`none of the jobs was started within ${LIMIT_MS} ms`);
  return {
    isDone,
    msPerJob: (addedAt - calledAt) / (to - from),
    figures: {
      perSecond: started / (quantile(late, 1) / 1_000),
      started: (started / (to - from)) * 100,
      first: quantile(late, 0),
      p50: quantile(late, 0.5),
      p99: quantile(late, 0.99),
      longest: await longest(),
      redisCpu: spent.cpuUs / started,
      commands: spent.commands / started,
      processCpu: (user + system) / started,
    },
  };
}

/** Starts watching; the answer says how many milliseconds the longest command, a script as a whole, has kept the server since. */
async function watchCalls(control: Redis): Promise<() => Promise<number>> {
  await control.config('SET', 'latency-tracking-info-percentiles', '100');
  // The distributions are kept since the last reset.
  await control.config('RESETSTAT');
  return async () => {
    let longest = 0;
    for (const [name, value] of parseInfo(await control.info('latencystats'))) {
      if (name.startsWith('latency_percentiles_usec_')) {
        longest = Math.max(longest, Number(/p100=([\d.]+)/.exec(value)![1]));
      }
    }
    return longest / 1_000;
  };
}
