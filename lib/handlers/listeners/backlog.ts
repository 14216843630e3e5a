/** A line of bounded length: what is put in when it is full takes the place of the oldest. */
export class Backlog<T> {
  private items: T[] = [];
  private head = 0;

  constructor(private readonly max: number) {}

  get size(): number {
    return this.items.length - this.head;
  }

  /** Answers whether the oldest had to go for it. */
  put(item: T): boolean {
    const isFull = this.size >= this.max;
    if (isFull) this.take();
    this.items.push(item);
    return isFull;
  }

  /** The oldest; undefined when there is none. */
  take(): T | undefined {
    const item = this.items[this.head];
    if (this.size > 0) this.head += 1;
    // Not at each, which would move all the others every time.
    if (this.head >= this.max || this.head === this.items.length) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
    return item;
  }
}
