import { startProducer } from '../beside/start.js';
import { Arrivals } from '../measure/arrivals.js';
import { now } from '../measure/clock.js';
import { longWarmUpFor } from '../measure/produce.js';
import { meterRedis } from '../measure/redis-info.js';
import { quantile } from '../measure/stats.js';
import { settled } from '../measure/wait.js';
import { QUEUE, type Scenario } from '../scenario.js';

const PER_SECOND = 1_000;
const CONCURRENCY = 100;
/** Until the first job, so that the alarm of the producer is up. */
const LEAD_MS = 100;

/**
 * Jobs arrive by a fixed timetable, even if earlier ones have not ended. Latency counts from the scheduled time of a
 * job, so a delayed producer makes it larger instead of rarer.
 */
export const latency: Scenario = {
  name: `latency-${PER_SECOND}`,
  title: `latency at a steady ${PER_SECOND.toLocaleString('en')} jobs/s from another process, from the timetable to the start of the handler`,
  figures: [
    { key: 'p50', title: 'p50', unit: 'ms', better: 'less' },
    { key: 'p99', title: 'p99', unit: 'ms', better: 'less' },
    { key: 'p999', title: 'p99.9', unit: 'ms', better: 'less' },
    { key: 'lag', title: 'of it until add is called, p50', unit: 'ms', better: 'less' },
    { key: 'redisCpu', title: 'Redis CPU per job, added and consumed', unit: 'µs', better: 'less' },
    { key: 'commands', title: 'Redis commands per job, those in scripts too', unit: '', better: 'less' },
    { key: 'processCpu', title: 'worker CPU per job', unit: 'µs', better: 'less' },
  ],
  jobs: (asked) => Math.min(5_000, Math.max(1_000, Math.ceil(asked / 20))),
  async measure(lab) {
    const { jobs } = lab;
    // At this pace, too: some of what runs then does not where jobs come one upon another.
    const warmUp = longWarmUpFor(jobs);
    const arrivals = new Arrivals(warmUp + jobs, lab.progress);
    const session = await lab.contender.open({
      url: lab.url,
      queues: [QUEUE],
      work: { concurrency: CONCURRENCY, handle: arrivals.handle },
    });
    const producer = await startProducer(lab);
    const everyMs = 1_000 / PER_SECOND;
    await producer.ask('addOnTime', { from: 0, to: warmUp, startAt: now() + LEAD_MS, everyMs });
    await arrivals.reached(warmUp);
    await settled(session);

    const redis = await meterRedis(lab.control);
    const cpuBefore = process.cpuUsage();
    const startAt = now() + LEAD_MS;
    const called = await producer.ask('addOnTime', { from: warmUp, to: warmUp + jobs, startAt, everyMs });
    await arrivals.reached(warmUp + jobs);
    const { user, system } = process.cpuUsage(cpuBefore);
    await settled(session);
    const spent = await redis();
    await producer.ask('close');
    await producer.end();
    await session.close();

    const due = Array.from(called, (_, i) => startAt + i * everyMs);
    const latencies = due.map((at, i) => arrivals.at[warmUp + i]! - at);
    return {
      p50: quantile(latencies, 0.5),
      p99: quantile(latencies, 0.99),
      p999: quantile(latencies, 0.999),
      lag: quantile(
        due.map((at, i) => called[i]! - at),
        0.5,
      ),
      redisCpu: spent.cpuUs / jobs,
      commands: spent.commands / jobs,
      processCpu: (user + system) / jobs,
    };
  },
};
