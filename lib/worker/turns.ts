/** What has to be known of a queue to say whether its turn has come. */
export interface Turn {
  /** Its share beside that of the others; where the order is strict it means nothing. */
  readonly weight: number;
  /** Whether it may claim: neither paused nor stopping. */
  readonly open: boolean;
  /** Known to have nothing to claim. */
  readonly dry: boolean;
  /** It had nothing, but that was a while ago: asked like one that has, counted on like one that has not. */
  readonly doubtful: boolean;
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

/**
 * The first that has something takes all there is; claims of later ones that have not started give way. Those in doubt are
 * asked at the same time, not one after another: it is known what all of them have before anything starts, and what was
 * claimed too many goes back.
 */
export class StrictTurns implements Turns {
  shares(slots: TakenSlots, turns: readonly Turn[], asker?: Turn): number[] {
    const shares = turns.map(() => 0);
    for (const [place, turn] of turns.entries()) {
      if (!turn.open || (turn.dry && turn !== asker)) continue;
      const room = this.room(slots, turns, place) - sum(turns.slice(place), 'asked');
      shares[place] = Math.max(0, room + turn.ahead);
      if (!turn.dry && !turn.doubtful) break;
    }
    return shares;
  }

  hasRoom(slots: TakenSlots, turns: readonly Turn[], one: Turn): boolean {
    return this.room(slots, turns, turns.indexOf(one)) + one.ahead > 0;
  }

  next(turns: readonly Turn[]): number {
    const first = turns.findIndex(({ open, held, dry }) => open && (held > 0 || !dry));
    return first >= 0 && turns[first]!.held > 0 ? first : -1;
  }

  joined(): void {}

  private room({ total, running }: TakenSlots, turns: readonly Turn[], place: number): number {
    const own = sum(turns.slice(0, place + 1), 'held');
    const later = sum(turns, 'held') - own;
    return Math.max(total - running, Math.min(total, later)) - own;
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
    const held = sum(turns, 'held');
    const free = slots.total - slots.running - held;
    const has = ({ open, dry, doubtful }: Turn) => open && !dry && !doubtful;
    const mayAsk = (turn: Turn) => turn.open && (!turn.dry || turn === asker);
    // Those in doubt are asked and not waited for: what they would take is given out to the others too.
    const sure = this.deal(free - sum(turns.filter(has), 'asked'), turns, has);
    const perhaps = this.deal(free - sum(turns, 'asked'), turns, mayAsk);
    const weights = sum(turns, 'weight');
    return turns.map((turn, i) => {
      if (!mayAsk(turn)) return 0;
      const own = turn.held + turn.asked;
      let share = has(turn) ? sure[i]! : perhaps[i]!;
      if (share + own === 0) {
        // Where others have jobs in hand the slots change hands fast, and some of them will be this one's.
        if (held > 0) share = Math.max(1, Math.floor((slots.total * turn.weight) / weights));
        else if (turn.doubtful && free > 0) share = 1;
      }
      return share + Math.max(0, turn.ahead - own);
    });
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

  /** So many slots, one by one to whoever is furthest behind. */
  private deal(free: number, turns: readonly Turn[], may: (turn: Turn) => boolean): number[] {
    const shares = turns.map(() => 0);
    // What is claimed already, or will be, will have been served.
    const tags = turns.map((turn, i) => this.tagOf(turn, i) + (turn.held + turn.asked) / turn.weight);
    for (let left = free; left > 0; left--) {
      const place = least(tags, (i) => may(turns[i]!));
      if (place < 0) break;
      shares[place]! += 1;
      tags[place]! += 1 / turns[place]!.weight;
    }
    return shares;
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
