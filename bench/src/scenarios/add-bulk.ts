import { BATCH, inBatchesOf, measureProducing, producedFigures } from '../measure/produce.js';
import type { Scenario } from '../scenario.js';

export const addBulk = addingBy('add-bulk', BATCH);
export const addBulk50 = addingBy('add-bulk-50', 50);

function addingBy(name: string, size: number): Scenario {
  return {
    name,
    title: `add in bulk, ${size.toLocaleString('en')} jobs a call, one call at a time`,
    figures: producedFigures,
    measure: (lab) => measureProducing(lab, lab.jobs, inBatchesOf(size)),
  };
}
