import { payload } from '../contender.js';
import { connections } from '../measure/connections.js';
import type { Lab, Scenario } from '../scenario.js';

const MANY = 100;

/** An application that adds to its queues and works on them, each queue registered in the simplest way. */
export const connectionCount: Scenario = {
  name: 'connections',
  title: 'connections to Redis of one process that adds and works',
  figures: [
    { key: 'one', title: '1 queue, 1 processor', unit: '', better: 'less' },
    { key: 'many', title: `${MANY} queues, ${MANY} processors`, unit: '', better: 'less' },
  ],
  jobs: () => 1 + MANY,
  async measure(lab) {
    return { one: await connectionsWith(lab, 1), many: await connectionsWith(lab, MANY) };
  },
};

async function connectionsWith(lab: Lab, count: number): Promise<number> {
  const queues = Array.from({ length: count }, (_, i) => `bench-${i}`);
  let handled = 0;
  let allHandled!: () => void;
  const done = new Promise<void>((resolve) => (allHandled = resolve));
  const session = await lab.contender.open({
    url: lab.url,
    queues,
    work: { concurrency: 1, handle: () => ++handled === count && allHandled() },
  });
  // One job through each queue, since connections may be opened by first use.
  await Promise.all(queues.map((queue, n) => session.add(queue, payload(n))));
  await done;
  const open = await connections(lab.control);
  await session.close();
  lab.progress(count, MANY);
  return open;
}
