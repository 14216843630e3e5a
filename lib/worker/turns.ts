/** What has to be known of a queue to say whether its turn has come. */
export interface Turn {
  /** Its share beside that of the others; where the order is strict it means nothing. */
  readonly weight: number;
  /** Whether it may claim: neither paused nor stopping. */
  readonly open: boolean;
  /** Known to have nothing to claim. */
  readonly dry: boolean;
  /** Jobs claimed and not started. */
  readonly held: number;
  /** Jobs that a claim on its way may bring. */
  readonly asked: number;
  /** Jobs it may hold beyond what the slots run at once. */
  readonly ahead: number;
}

export interface TakenSlots {
  readonly total: number;
  readonly running: number;
}

/** Who of several queues may claim for the slots they share, and whose claimed job starts next. */
export interface Turns {
  /**
   * How many jobs each may ask for now, by its place.
   *
   * @param asker asks anyway, with what it settles: it may learn so that it is not dry any more.
   */
  shares(slots: TakenSlots, turns: readonly Turn[], asker?: Turn): number[];
  /** Whether a job of this one would find room, once the claims on their way have brought nothing. */
  hasRoom(slots: TakenSlots, turns: readonly Turn[], one: Turn): boolean;
  /** The place of the one whose claimed job starts next, or -1; it counts as started. */
  next(turns: readonly Turn[]): number;
  /** It has something to claim again, after it had nothing. */
  joined(place: number): void;
}

/** The first that is not dry takes all there is. Claims of later ones that have not started give way. */
export class StrictTurns implements Turns {
  shares(slots: TakenSlots, turns: readonly Turn[], asker?: Turn): number[] {
    const shares = turns.map(() => 0);
    const first = turns.findIndex((turn) => turn.open && (!turn.dry || turn === asker));
    if (first >= 0) {
      const room = this.room(slots, turns, first) - sum(turns, 'asked');
      shares[first] = Math.max(0, room + turns[first]!.ahead);
    }
    return shares;
  }

  hasRoom(slots: TakenSlots, turns: readonly Turn[], one: Turn): boolean {
    return this.room(slots, turns, turns.indexOf(one)) + one.ahead > 0;
  }

  next(turns: readonly Turn[]): number {
    return turns.findIndex(({ open, held }) => open && held > 0);
  }

  joined(): void {}

  private room({ total, running }: TakenSlots, turns: readonly Turn[], place: number): number {
    const own = sum(turns.slice(0, place + 1), 'held');
    return total - running - own + Math.min(total, sum(turns, 'held') - own);
  }
}

/**
 * Each is served by its weight among those that have something, and so evenly that none waits longer than it must: every start
 * takes it further by the inverse of its weight, and whoever is furthest behind is next. What was dry begins where the
 * others are, so that it neither catches up nor waits.
 */
export class WeightedTurns implements Turns {
  private readonly passed: number[] = [];
  private front = 0;

  shares(slots: TakenSlots, turns: readonly Turn[], asker?: Turn): number[] {
    const shares = turns.map(() => 0);
    const held = sum(turns, 'held');
    const mayAsk = turns.map((turn) => turn.open && (!turn.dry || turn === asker));
    // What is claimed already, or will be, will have been served.
    const tags = turns.map((turn, i) => this.tagOf(turn, i) + (turn.held + turn.asked) / turn.weight);
    for (let free = slots.total - slots.running - held - sum(turns, 'asked'); free > 0; free--) {
      const place = least(tags, (i) => mayAsk[i]!);
      if (place < 0) break;
      shares[place]! += 1;
      tags[place]! += 1 / turns[place]!.weight;
    }
    const weights = sum(turns, 'weight');
    for (const [i, turn] of turns.entries()) {
      if (!mayAsk[i]) continue;
      const own = turn.held + turn.asked;
      // Where others have jobs in hand the slots change hands fast, and some of them will be this one's.
      if (held > 0 && own + shares[i]! === 0) {
        shares[i] = Math.max(1, Math.floor((slots.total * turn.weight) / weights));
      }
      shares[i]! += Math.max(0, turn.ahead - own);
    }
    return shares;
  }

  hasRoom({ total, running }: TakenSlots, turns: readonly Turn[], one: Turn): boolean {
    const held = sum(turns, 'held');
    return total - running - held > 0 || (held > 0 && one.held === 0) || one.ahead > one.held;
  }

  next(turns: readonly Turn[]): number {
    const place = least(
      turns.map((turn, i) => this.tagOf(turn, i)),
      (i) => turns[i]!.open && turns[i]!.held > 0,
    );
    if (place >= 0) {
      const tag = this.tagOf(turns[place]!, place);
      this.front = Math.max(this.front, tag);
      this.passed[place] = tag + 1 / turns[place]!.weight;
    }
    return place;
  }

  joined(place: number): void {
    this.passed[place] = Math.max(this.passed[place] ?? 0, this.front);
  }

  private tagOf({ dry }: Turn, place: number): number {
    const passed = this.passed[place] ?? 0;
    return dry ? Math.max(passed, this.front) : passed;
  }
}

function sum(turns: readonly Turn[], field: 'held' | 'asked' | 'weight'): number {
  let total = 0;
  for (const turn of turns) total += turn[field];
  return total;
}

/** The place of the least value among those that may be; the first of several. */
function least(values: readonly number[], may: (place: number) => boolean): number {
  let found = -1;
  for (let i = 0; i < values.length; i++) {
    if (may(i) && (found < 0 || values[i]! < values[found]!)) found = i;
  }
  return found;
}
