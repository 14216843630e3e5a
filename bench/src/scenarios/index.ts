import type { Scenario } from '../scenario.js';
import { addBulk, addBulk50 } from './add-bulk.js';
import { addInFlight } from './add-in-flight.js';
import { addOne } from './add-one.js';
import { addReplicated } from './add-replicated.js';
import { connectionCount } from './connections.js';
import { consume, consume1, consume10 } from './consume.js';
import { delayedDue } from './delayed-due.js';
import { failing } from './failing.js';
import { fair } from './fair.js';
import { groups } from './groups.js';
import { await1ms, await50ms, burn } from './handlers.js';
import { latency } from './latency.js';
import { network } from './network.js';
import { payload1k, payload100k } from './payloads.js';
import { pickUpApart } from './pick-up-apart.js';
import { pickUp } from './pick-up.js';
import { fourProcesses, twoProcesses } from './processes.js';
import { hundredQueues, tenQueues } from './queues.js';
import { rateOfEight, rateOfOne } from './rates.js';
import { results } from './results.js';
import { schedules } from './schedules.js';
import { waitingMemory } from './waiting-memory.js';
import { watched } from './watched.js';

/** In the order of the table. */
export const scenarios: readonly Scenario[] = [
  consume,
  consume10,
  consume1,
  await1ms,
  await50ms,
  burn,
  failing,
  results,
  watched,
  payload1k,
  payload100k,
  addBulk,
  addBulk50,
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
  groups,
  fair,
  rateOfOne,
  rateOfEight,
  ...network,
  waitingMemory,
  connectionCount,
];
