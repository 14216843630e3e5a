import { fill, warmUpFor } from '../measure/produce.js';
import { meterRedis } from '../measure/redis-info.js';
import { Tally } from '../measure/tally.js';
import { settled } from '../measure/wait.js';
import { QUEUE, type Scenario } from '../scenario.js';

const CONCURRENCY = 100;

/**
 * Works off a full queue with a handler that does nothing. The clock runs between handled jobs, so neither the start of
 * the application nor its warm-up is in it; what Redis spent covers the whole run, the last acknowledgement included.
 */
export const consume: Scenario = {
  name: 'consume',
  title: `consume, no-op handler, concurrency ${CONCURRENCY}, one process`,
  figures: [
    { key: 'perSecond', title: 'throughput', unit: 'jobs/s', better: 'more' },
    { key: 'redisCpu', title: 'Redis CPU per job', unit: 'µs', better: 'less' },
    { key: 'commands', title: 'Redis commands per job, those in scripts too', unit: '', better: 'less' },
    { key: 'scriptCalls', title: 'script calls per 1,000 jobs', unit: '', better: 'less' },
    { key: 'processCpu', title: 'worker CPU per job', unit: 'µs', better: 'less' },
  ],
  async prepare(lab) {
    await fill(lab, { count: warmUpFor(lab.jobs) + lab.jobs });
  },
  async measure(lab) {
    const warmUp = warmUpFor(lab.jobs);
    const tally = new Tally(warmUp, lab.jobs, lab.progress);
    const redis = await meterRedis(lab.control);
    const session = await lab.contender.open({
      url: lab.url,
      queues: [QUEUE],
      work: { concurrency: CONCURRENCY, handle: tally.handle },
    });
    await tally.finished;
    await settled(session);
    const spent = await redis();
    await session.close();

    const all = warmUp + lab.jobs;
    return {
      perSecond: tally.perSecond,
      redisCpu: spent.cpuUs / all,
      commands: spent.commands / all,
      scriptCalls: (spent.scriptCalls / all) * 1_000,
      processCpu: tally.cpuUsPerJob,
    };
  },
};
