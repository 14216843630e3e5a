import { Worker } from 'node:worker_threads';
import { besides } from './besides.js';

const THREAD = besides(import.meta.url, 'alarm-thread');

/** Calls back at a moment, to a tenth of a millisecond and without a busy loop. Timers are less exact. */
export class Alarm {
  private readonly shared = new SharedArrayBuffer(16);
  private readonly views = alarmViews(this.shared);
  private readonly thread: Worker;

  constructor(onRing: () => void) {
    this.thread = new Worker(THREAD, { workerData: this.shared });
    this.thread.on('message', onRing);
  }

  /** Calls back once at this moment of `now()`, and not at the one that was set before. */
  set(at: number): void {
    this.views.ringsAt[0] = at;
    Atomics.add(this.views.setting, 0, 1);
    Atomics.notify(this.views.setting, 0);
  }

  async close(): Promise<void> {
    await this.thread.terminate();
  }
}

/** Shared by both threads: how often the alarm was set, and the time. */
export function alarmViews(shared: SharedArrayBuffer) {
  return { setting: new Int32Array(shared, 0, 1), ringsAt: new Float64Array(shared, 8, 1) };
}
