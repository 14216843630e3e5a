import { BATCH, inBatches, measureProducing, producedFigures } from '../measure/produce.js';
import type { Scenario } from '../scenario.js';

export const addBulk: Scenario = {
  name: 'add-bulk',
  title: `add in bulk, ${BATCH.toLocaleString('en')} jobs a call, one call at a time`,
  figures: producedFigures,
  measure: (lab) => measureProducing(lab, lab.jobs, inBatches),
};
