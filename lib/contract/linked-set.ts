/** An item of a `LinkedSet`. Only the set writes these fields. An item can be in one set at a time. */
export interface Linked<T> {
  before: T | undefined;
  after: T | undefined;
  isIn: boolean;
}

/**
 * Objects in the order in which they were added, for sets with many additions and deletions. V8 moves a `Set` to a new table again and
 * again, and each old table points to the new one. Once one table is in the old generation, all objects in later ones survive minor
 * garbage collections. Here a deleted item points to nothing.
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

  /** Removes the item. Returns whether it was in the set. */
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

  /** The current items. Items that are deleted during the iteration are skipped. */
  *[Symbol.iterator](): Iterator<T> {
    const all: T[] = [];
    for (let item = this.first; item; item = item.after) all.push(item);
    for (const item of all) if (item.isIn) yield item;
  }
}
