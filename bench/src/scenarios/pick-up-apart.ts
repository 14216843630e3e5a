import { startProducer } from '../beside/start.js';
import { Arrivals } from '../measure/arrivals.js';
import { QUEUE, type Scenario } from '../scenario.js';
import { pickUpFigures, pickUpOf, pickUpSamples, pickUpWarmUp } from './pick-up.js';

/** The same with `add` in another process, like a web server that adds and a worker process. */
export const pickUpApart: Scenario = {
  name: 'pick-up-apart',
  title: 'pick-up by an idle worker of a job that another process adds',
  figures: pickUpFigures,
  jobs: pickUpSamples,
  async measure(lab) {
    const { quick, first } = pickUpWarmUp(lab.jobs);
    const all = first + lab.jobs;
    const arrivals = new Arrivals(all, lab.progress);
    const session = await lab.contender.open({
      url: lab.url,
      queues: [QUEUE],
      work: { concurrency: 100, handle: arrivals.handle },
    });
    const producer = await startProducer(lab);
    const called = await producer.ask('addWithPauses', { from: 0, to: all, pauseFrom: quick });
    await arrivals.reached(all);
    await producer.ask('close');
    await producer.end();
    await session.close();
    return pickUpOf(Array.from(called, (at, n) => arrivals.at[n]! - at).slice(first));
  },
};
