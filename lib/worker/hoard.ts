/** Claimed jobs that have not started within this time go back: a slow one must not keep them from idle workers. */
const HOARD_MS = 50;

/** Watches over claimed jobs that wait for a slot: where none of them starts for a while, all go back. */
export class Hoard {
  private timer: NodeJS.Timeout | undefined;
  private started = false;

  constructor(
    private readonly claims: { readonly size: number },
    private readonly giveBack: () => void,
  ) {}

  /** Some are there that cannot start yet. */
  watch(): void {
    this.timer ??= setTimeout(() => this.look(), HOARD_MS);
  }

  /** One of them starts. */
  starts(): void {
    this.started = true;
  }

  stop(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = undefined;
  }

  private look(): void {
    this.timer = undefined;
    if (this.claims.size === 0) return;
    if (!this.started) return this.giveBack();
    this.started = false;
    this.watch();
  }
}
