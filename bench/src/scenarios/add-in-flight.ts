import { measureProducing, producedFigures, type Send } from '../measure/produce.js';
import { QUEUE, type Scenario } from '../scenario.js';

const IN_FLIGHT = 100;

export const addInFlight: Scenario = {
  name: 'add-in-flight',
  title: `add, ${IN_FLIGHT} calls in flight`,
  figures: producedFigures,
  measure: (lab) => measureProducing(lab, lab.jobs, inLanes),
};

/** As many callers as calls in flight, each waiting for its own answer, like in a busy web server. */
export const inLanes: Send = async (session, jobs, progress) => {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < jobs.length) {
      await session.add(QUEUE, jobs[next++]!);
      progress();
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
};
