import { longWarmUpFor, measureProducing, producedFigures, type Send } from '../measure/produce.js';
import { QUEUE, type Scenario } from '../scenario.js';

/** Each call waits for the one before. This measures one round trip, so a tenth of the jobs is enough. */
export const addOne: Scenario = {
  name: 'add-one',
  title: 'add, one call at a time',
  figures: producedFigures,
  jobs: (asked) => Math.ceil(asked / 10),
  measure: (lab) => measureProducing(lab, lab.jobs, oneByOne, { warmUp: longWarmUpFor(lab.jobs) }),
};

export const oneByOne: Send = async (session, jobs, progress) => {
  for (const job of jobs) {
    await session.add(QUEUE, job);
    progress();
  }
};
