import {
  type Declaration,
  type DeclareAnswer,
  type DeclareCall,
  type RenewAnswer,
  ownerOf,
} from '../contract/declaration-verbs.js';
import type { ScheduleBook } from './schedule-book.js';

/** A process that declares a set. */
interface Standing {
  readonly declaration: Declaration;
  endsAt: number;
}

/** A set of schedules as last declared. */
interface DeclaredSet {
  readonly owner: string;
  readonly ids: readonly string[];
}

/** Which processes declare which schedules of one queue. */
export class DeclarationBook {
  private readonly standings = new Map<string, Standing>();
  private readonly sets = new Map<string, DeclaredSet>();

  constructor(private readonly schedules: ScheduleBook) {}

  declare({ ids, puts, ...declaration }: DeclareCall, now: number): DeclareAnswer {
    this.stand(declaration, now);
    this.sets.set(setOf(declaration), { owner: declaration.owner, ids: [...ids] });
    const outcomes = puts.map((put) =>
      this.isTaken(put.id, declaration.owner, now) ? 'taken' : this.schedules.put(put, now),
    );
    const { removed, left } = this.prune(declaration.owner);
    // Without schedules there is nothing to renew.
    const idle = ids.length === 0 && left === 0;
    if (idle) this.forget(declaration);
    return { outcomes, removed, idle };
  }

  renew(declaration: Declaration, now: number): RenewAnswer {
    const own = this.standings.get(keyOf(declaration));
    if (!own) return { kind: 'unknown' };
    // If this process is late itself, it or its clock may have been suspended. Then all declarations are renewed.
    const isLate = own.endsAt < now;
    for (const [key, one] of this.standings) {
      if (one === own || one.declaration.owner !== declaration.owner) continue;
      const { ttlMs } = one.declaration;
      // It ends later than it can, so the clock was set back.
      if (one.endsAt > now + ttlMs || (isLate && one.endsAt < now)) one.endsAt = now + ttlMs;
      else if (one.endsAt < now) this.standings.delete(key);
    }
    this.stand(declaration, now);
    const { removed, gone, left } = this.prune(declaration.owner);
    const idle = left === 0 && this.sets.get(setOf(declaration))?.ids.length === 0;
    if (idle) this.forget(declaration);
    return { kind: 'renewed', removed, shifted: gone > 0, idle };
  }

  /** Ends a declaration. The set stays: the next process that declares removes the schedules that it does not declare itself. */
  withdraw(declaration: Declaration): void {
    this.standings.delete(keyOf(declaration));
  }

  clear(): void {
    this.standings.clear();
    this.sets.clear();
  }

  private stand(declaration: Declaration, now: number): void {
    this.standings.set(keyOf(declaration), { declaration, endsAt: now + declaration.ttlMs });
  }

  private forget(declaration: Declaration): void {
    this.standings.delete(keyOf(declaration));
    this.sets.delete(setOf(declaration));
  }

  /** Whether a live process of another owner declares the schedule. Otherwise this owner may take it over. */
  private isTaken(id: string, by: string, now: number): boolean {
    const record = this.schedules.get(id)?.record;
    const owner = record === undefined ? null : ownerOf(record);
    if (owner === null || owner === by) return false;
    for (const { declaration, endsAt } of this.standings.values()) {
      if (declaration.owner !== owner || endsAt < now) continue;
      if (this.sets.get(setOf(declaration))?.ids.includes(id)) return true;
    }
    return false;
  }

  /**
   * Removes schedules of this owner that only sets without a live process name. A schedule with another owner was replaced by
   * hand, and stays.
   */
  private prune(owner: string): { removed: string[]; gone: number; left: number } {
    const living = new Set([...this.standings.values()].map(({ declaration }) => setOf(declaration)));
    const wanted = new Set<string>();
    const gone: string[] = [];
    let left = 0;
    for (const [name, set] of this.sets) {
      if (set.owner !== owner) continue;
      if (!living.has(name)) gone.push(name);
      else {
        if (set.ids.length > 0) left += 1;
        for (const id of set.ids) wanted.add(id);
      }
    }
    const removed: string[] = [];
    for (const name of gone) {
      for (const id of this.sets.get(name)!.ids) {
        const record = this.schedules.get(id)?.record;
        if (wanted.has(id) || record === undefined || ownerOf(record) !== owner) continue;
        this.schedules.remove(id);
        removed.push(id);
      }
      this.sets.delete(name);
    }
    return { removed, gone: gone.length, left };
  }
}

/** Owners and names of sets contain no colon. */
function setOf({ owner, set }: Declaration): string {
  return `${owner}:${set}`;
}

function keyOf(declaration: Declaration): string {
  return `${declaration.process} ${declaration.ttlMs} ${setOf(declaration)}`;
}
