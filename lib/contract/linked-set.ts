/** What may stand in one `LinkedSet` at a time; the set alone writes these. */
export interface Linked<T> {
  before: T | undefined;
  after: T | undefined;
  isIn: boolean;
}

/**
 * Objects that come and go, in the order they came. Where many do, V8 moves a `Set` to a new table every so often, and the old table
 * leads to the new one: as soon as one of them is an old object, what has stood in any later one outlives quick collections. Here
 * who leaves knows nobody any more.
 */
export class LinkedSet<T extends Linked<T>> implements Iterable<T> {
  private count = 0;
  private first: T | undefined;
  private last: T | undefined;

  get size(): number {
    return this.count;
  }

  add(item: T): void {
    if (item.isIn) return;
    item.isIn = true;
    item.before = this.last;
    if (this.last) this.last.after = item;
    else this.first = item;
    this.last = item;
    this.count += 1;
  }

  /** Answers whether it was there. */
  delete(item: T): boolean {
    if (!item.isIn) return false;
    const { before, after } = item;
    if (before) before.after = after;
    else this.first = after;
    if (after) after.before = before;
    else this.last = before;
    item.before = item.after = undefined;
    item.isIn = false;
    this.count -= 1;
    return true;
  }

  /** Those that are there now; who leaves meanwhile is passed over. */
  *[Symbol.iterator](): Iterator<T> {
    const all: T[] = [];
    for (let item = this.first; item; item = item.after) all.push(item);
    for (const item of all) if (item.isIn) yield item;
  }
}
