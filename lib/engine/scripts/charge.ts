import { defineScript } from '../script.js';

export const charge = defineScript({
  name: 'charge',
  memory: 'allow',
  keys: ['meta', 'limits', 'limitStates', 'lines', 'lineStates', 'ready', 'resting', 'doorbell'],
  args: {},
  /** changes: field of the limit, ms to hold starts back (below 0: a hold ends), the amount to add to the count of its rate. */
  lists: ['changes'],
  reply: (raw: number) => raw,
});
