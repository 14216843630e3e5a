import { fill } from '../measure/produce.js';
import { Tally } from '../measure/tally.js';
import { turnsOf } from '../measure/turns.js';
import { QUEUE, type Lab, type Scenario } from '../scenario.js';

const CONCURRENCY = 100;
const SMALL = 999;
const EACH = 10;

/** One group has very many jobs, and those of the others were added behind them. When are the others served? */
export const fair: Scenario = {
  name: 'fair',
  title: `one group with all of these jobs, and ${SMALL} with ${EACH} more jobs each, added last; concurrency ${CONCURRENCY}`,
  needs: ['groups'],
  figures: [
    { key: 'widest', title: 'largest difference of turns between groups', unit: '', better: 'less' },
    {
      key: 'inFirstRound',
      title: `groups served by the first ${(SMALL + 1).toLocaleString('en')} starts`,
      unit: '',
      better: 'more',
    },
    { key: 'untilAll', title: 'starts until every group was served', unit: '', better: 'less' },
    { key: 'untilAllMs', title: 'time until then', unit: 'ms', better: 'less' },
    { key: 'untilDoneMs', title: `time until the ${SMALL} had no more jobs`, unit: 'ms', better: 'less' },
  ],
  prepare: (lab) => fill(lab, { count: allOf(lab), groups: groupsOf(lab) }),
  measure: measureFair,
};

function allOf({ jobs }: Lab): number {
  return jobs + SMALL * EACH;
}

/** 0 is the large one. */
function groupOf({ jobs }: Lab, n: number): number {
  return n < jobs ? 0 : 1 + ((n - jobs) % SMALL);
}

function groupsOf(lab: Lab) {
  return { of: (n: number) => `group-${groupOf(lab, n)}`, isOneAtATime: false };
}

async function measureFair(lab: Lab): Promise<Record<string, number>> {
  const order: number[] = [];
  const at: number[] = [];
  let left = SMALL * EACH;
  let end!: () => void;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const tally = new Tally({ warmUp: 0, jobs: allOf(lab) }, lab.progress);
  const session = await lab.contender.open({
    url: lab.url,
    queues: [QUEUE],
    groups: groupsOf(lab),
    work: {
      concurrency: CONCURRENCY,
      handle(data) {
        tally.handle(data);
        // Runs while the application closes do not count.
        if (left === 0) return;
        order.push(groupOf(lab, data.n));
        at.push(performance.now());
        if (data.n >= lab.jobs) left -= 1;
        if (left === 0) end();
      },
    },
  });
  await Promise.race([ended, tally.finished]);
  await session.close();
  tally.verify();

  const sizes = [lab.jobs, ...Array.from({ length: SMALL }, () => EACH)];
  const turns = turnsOf(order, sizes);
  return { ...turns, untilAllMs: at[turns.untilAll - 1]! - at[0]!, untilDoneMs: at.at(-1)! - at[0]! };
}
