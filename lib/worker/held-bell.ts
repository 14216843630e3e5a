/** A bell that may tell of what this worker may not take is passed on, but not again and again: alone it would ring for itself. */
const PASS_ON_MS = 250;

/** The bell that has woken a worker, until an exchange has answered it: each wakes one worker, so none may be lost. */
export class HeldBell {
  private isHeld = false;
  private passedOnAt = -Infinity;

  constructor(private readonly passOn: () => void) {}

  take(): void {
    this.isHeld = true;
  }

  /** An exchange goes out: it rings for whatever it leaves, but for suspects only where it may take one. */
  asking(maySuspect: boolean): void {
    if (!this.isHeld) return;
    this.isHeld = false;
    const now = performance.now();
    if (maySuspect || now - this.passedOnAt < PASS_ON_MS) return;
    this.passedOnAt = now;
    this.passOn();
  }

  /** The claim that was on its way when the bell came has filled the slots: the bell is for another worker then. */
  notNeeded(): void {
    if (!this.isHeld) return;
    this.isHeld = false;
    this.passOn();
  }
}
