import { defineScript } from '../script.js';

export const charge = defineScript({
  name: 'charge',
  memory: 'allow',
  keys: ['meta', 'limits', 'limitStates'],
  args: {},
  /** changes: field of the limit, ms to hold starts back, what to add to the count of its rate. */
  lists: ['changes'],
  reply: (raw: number) => raw,
});
