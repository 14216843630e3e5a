import { Alarm } from '../measure/alarm.js';
import { now } from '../measure/clock.js';

/** The alarm is usually this late. If it is earlier, a busy loop waits for the rest. */
const LEAD_MS = 0.06;

/** Calls each function a fixed time later, never earlier, in the order in which they were given. */
export class DelayLine {
  private readonly pending: { readonly dueAt: number; readonly act: () => void }[] = [];
  private readonly alarm = new Alarm(() => this.flush());

  constructor(private readonly delayMs: number) {}

  push(act: () => void): void {
    this.pending.push({ dueAt: now() + this.delayMs, act });
    if (this.pending.length === 1) this.waitForFirst();
  }

  close(): Promise<void> {
    return this.alarm.close();
  }

  private flush(): void {
    const at = now();
    const firstLater = this.pending.findIndex(({ dueAt }) => dueAt > at);
    const due = this.pending.splice(0, firstLater === -1 ? this.pending.length : firstLater);
    for (const { act } of due) act();
    if (this.pending.length > 0) this.waitForFirst();
  }

  private waitForFirst(): void {
    const { dueAt } = this.pending[0]!;
    if (dueAt - now() > LEAD_MS) this.alarm.set(dueAt - LEAD_MS);
    else setImmediate(() => this.flush());
  }
}
