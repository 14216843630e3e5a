import { startProducer } from '../beside/start.js';
import { Arrivals } from '../measure/arrivals.js';
import { now } from '../measure/clock.js';
import { watchCalls } from '../measure/longest-call.js';
import { warmUpFor } from '../measure/produce.js';
import { meterRedis } from '../measure/redis-info.js';
import { quantile } from '../measure/stats.js';
import { settled } from '../measure/wait.js';
import { QUEUE, type Scenario } from '../scenario.js';

const CONCURRENCY = 100;
/** Allowed beyond the time that adding should take by what was seen before: the moment must not come before all are added. */
const MARGIN = 1.5;
const QUIET_MS = 1_000;
/** Some let only a few delayed jobs through at a time; after this long what is left no longer matters. */
const LIMIT_MS = 20_000;

/** Many jobs of another process are delayed to one moment, for which a worker waits that has nothing else to do. */
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
    const producer = await startProducer(lab);
    /** Answers the moment, once all are added. */
    const addDue = async (from: number, to: number, msPerJob: number) => {
      const calledAt = now();
      const dueAt = calledAt + (to - from) * msPerJob * MARGIN + QUIET_MS;
      const addedAt = await producer.ask('addDueAt', { from, to, dueAt });
      lab.progress(to, all * 2);
      return { dueAt, msPerJob: (addedAt - calledAt) / (to - from) };
    };
    const probe = Math.ceil(warmUp / 10);
    const cold = await addDue(0, probe, 1);
    const warm = await addDue(probe, warmUp, cold.msPerJob);
    await arrivals.reached(warmUp, LIMIT_MS);
    const { dueAt } = await addDue(warmUp, all, warm.msPerJob);

    const longest = await watchCalls(lab.control);
    const redis = await meterRedis(lab.control);
    const cpuBefore = process.cpuUsage();
    await arrivals.reached(all, dueAt + LIMIT_MS - now());
    const { user, system } = process.cpuUsage(cpuBefore);
    const isDone = arrivals.count === all;
    if (isDone) await settled(session);
    const spent = await redis();
    const longestMs = await longest();
    await producer.ask('close');
    await producer.end();
    if (isDone) await session.close();

    const late = arrivals.at
      .slice(warmUp)
      .map((at) => (at === 0 ? LIMIT_MS : at - dueAt))
      .toSorted();
    const started = late.filter((ms) => ms < LIMIT_MS).length;
    if (started === 0) throw new Error(`none of the jobs was started within ${LIMIT_MS} ms`);
    return {
      perSecond: started / (late.at(-1)! / 1_000),
      started: (started / lab.jobs) * 100,
      first: late[0]!,
      p50: quantile([...late], 0.5),
      p99: quantile([...late], 0.99),
      longest: longestMs,
      redisCpu: spent.cpuUs / started,
      commands: spent.commands / started,
      processCpu: (user + system) / started,
    };
  },
};
