import { parentPort, workerData } from 'node:worker_threads';
import { now } from './clock.js';
import { alarmViews } from './alarm.js';

/*
 * Sleeps to the moment it is told, to within some 50 µs, and says so. A wait for an atomic has that resolution, where a timer of
 * the event loop has one of a millisecond; but it blocks, hence a thread.
 */
const { setting, ringsAt } = alarmViews(workerData as SharedArrayBuffer);
let rung = 0;
for (;;) {
  const current = Atomics.load(setting, 0);
  const left = ringsAt[0]! - now();
  if (current === rung) Atomics.wait(setting, 0, current);
  else if (left > 0) Atomics.wait(setting, 0, current, left);
  else {
    rung = current;
    parentPort!.postMessage(null);
  }
}
