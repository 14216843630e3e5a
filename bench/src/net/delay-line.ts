import { Alarm } from '../measure/alarm.js';
import { now } from '../measure/clock.js';

/** Does everything it is given a fixed time later, in the order in which it was given. */
export class DelayLine {
  private readonly pending: { readonly dueAt: number; readonly act: () => void }[] = [];
  private readonly alarm = new Alarm(() => this.flush());

  constructor(private readonly delayMs: number) {}

  push(act: () => void): void {
    this.pending.push({ dueAt: now() + this.delayMs, act });
    if (this.pending.length === 1) this.alarm.set(this.pending[0]!.dueAt);
  }

  close(): Promise<void> {
    return this.alarm.close();
  }

  private flush(): void {
    const at = now();
    const firstLater = this.pending.findIndex(({ dueAt }) => dueAt > at);
    const due = this.pending.splice(0, firstLater === -1 ? this.pending.length : firstLater);
    for (const { act } of due) act();
    if (this.pending.length > 0) this.alarm.set(this.pending[0]!.dueAt);
  }
}
