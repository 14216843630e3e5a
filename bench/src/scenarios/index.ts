import type { Scenario } from '../scenario.js';
import { addBulk } from './add-bulk.js';
import { addInFlight } from './add-in-flight.js';
import { addOne } from './add-one.js';
import { addReplicated } from './add-replicated.js';
import { connectionCount } from './connections.js';
import { consume } from './consume.js';
import { delayedDue } from './delayed-due.js';
import { latency } from './latency.js';
import { network } from './network.js';
import { pickUpApart } from './pick-up-apart.js';
import { pickUp } from './pick-up.js';
import { fourProcesses, twoProcesses } from './processes.js';
import { hundredQueues, tenQueues } from './queues.js';
import { schedules } from './schedules.js';
import { waitingMemory } from './waiting-memory.js';

/** In the order of the table. */
export const scenarios: readonly Scenario[] = [
  consume,
  addBulk,
  addInFlight,
  addOne,
  addReplicated,
  pickUp,
  pickUpApart,
  latency,
  delayedDue,
  schedules,
  tenQueues,
  hundredQueues,
  twoProcesses,
  fourProcesses,
  ...network,
  waitingMemory,
  connectionCount,
];
