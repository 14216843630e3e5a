import type { Scenario } from '../scenario.js';
import { addBulk } from './add-bulk.js';
import { addInFlight } from './add-in-flight.js';
import { addOne } from './add-one.js';
import { addReplicated } from './add-replicated.js';
import { connectionCount } from './connections.js';
import { consume } from './consume.js';
import { pickUp } from './pick-up.js';
import { waitingMemory } from './waiting-memory.js';

/** In the order of the table. */
export const scenarios: readonly Scenario[] = [
  consume,
  addBulk,
  addInFlight,
  addOne,
  addReplicated,
  pickUp,
  waitingMemory,
  connectionCount,
];
