import { setTimeout as sleep } from 'node:timers/promises';
import { payload } from '../contender.js';
import { wallNow } from '../measure/clock.js';
import { meterRedis } from '../measure/redis-info.js';
import { quantile } from '../measure/stats.js';
import { QUEUE, type Lab, type Scenario } from '../scenario.js';

const SCHEDULES = 100;
const EVERY_MS = 1_000;
const WARM_UP_PERIODS = 2;
const PERIODS = 4;
const EXPECTED = SCHEDULES * PERIODS;
/** A start this much before the moment is one that the clocks round, and not one that is nearly an interval late. */
const EARLY_MS = 5;

/** Many schedules with the same interval on one idle worker. Each run counts from the moment its schedule is due. */
export const schedules: Scenario = {
  name: 'schedules',
  title: `${SCHEDULES} schedules of every ${EVERY_MS / 1_000} s on one worker, for ${PERIODS} s`,
  needs: ['schedules'],
  jobs: () => EXPECTED,
  figures: [
    { key: 'runs', title: `runs, of ${EXPECTED} that are due`, unit: '', better: 'more' },
    { key: 'p50', title: 'start after the moment, p50', unit: 'ms', better: 'less' },
    { key: 'p99', title: 'start after the moment, p99', unit: 'ms', better: 'less' },
    { key: 'redisCpu', title: 'Redis CPU per run', unit: 'µs', better: 'less' },
    { key: 'commands', title: 'Redis commands per run, those in scripts too', unit: '', better: 'less' },
    { key: 'processCpu', title: 'worker CPU per run', unit: 'µs', better: 'less' },
  ],
  async measure(lab) {
    const runs: { readonly schedule: number; readonly at: number }[] = [];
    const session = await lab.contender.open({
      url: lab.url,
      queues: [QUEUE],
      work: { concurrency: 100, handle: ({ n }) => void runs.push({ schedule: n, at: wallNow() }) },
    });
    const dueAt: number[] = [];
    for (let n = 0; n < SCHEDULES; n++) {
      dueAt.push(await session.schedule!(QUEUE, `every-${n}`, EVERY_MS, payload(n)));
    }

    await windowStart(dueAt);
    const redis = await meterRedis(lab.control);
    const cpuBefore = process.cpuUsage();
    runs.length = 0;
    await pass(lab, PERIODS);
    const { user, system } = process.cpuUsage(cpuBefore);
    const spent = await redis();
    const made = [...runs];
    await session.close();

    if (made.length === 0) throw new Error('no schedule made a run');
    const late = made.map(({ schedule, at }) => lateness(at, dueAt[schedule]!));
    return {
      runs: made.length,
      p50: quantile(late, 0.5),
      p99: quantile(late, 0.99),
      redisCpu: spent.cpuUs / made.length,
      commands: spent.commands / made.length,
      processCpu: (user + system) / made.length,
    };
  },
};

/** After the warm-up, half an interval from when most are due, so that no run is on the edge of the window. */
async function windowStart(dueAt: readonly number[]): Promise<void> {
  const from = quantile(dueAt, 0.5) + EVERY_MS * (WARM_UP_PERIODS + 0.5);
  await sleep(Math.max(0, from - wallNow()));
}

async function pass(lab: Lab, periods: number): Promise<void> {
  for (let i = 1; i <= periods; i++) {
    await sleep(EVERY_MS);
    lab.progress(i, periods);
  }
}

function lateness(at: number, dueAt: number): number {
  const since = (at - dueAt + EARLY_MS) % EVERY_MS;
  return (since < 0 ? since + EVERY_MS : since) - EARLY_MS;
}
