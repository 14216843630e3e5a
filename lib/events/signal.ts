/** A pause that can be ended early. It does not keep the process alive. */
export class Signal {
  private waiters = new Set<() => void>();

  /** Ends all running waits. */
  fire(): void {
    const waiters = this.waiters;
    this.waiters = new Set();
    for (const wake of waiters) wake();
  }

  /** Resolves with the next `fire`, or after `maxMs`. */
  wait(maxMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.waiters.delete(wake);
        resolve();
      };
      const timer = maxMs === undefined ? undefined : setTimeout(wake, maxMs).unref();
      this.waiters.add(wake);
    });
  }
}
