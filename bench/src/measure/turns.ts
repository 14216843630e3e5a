interface Turns {
  /** How many starts it took until every group was served. */
  readonly untilAll: number;
  /** How many groups were served by as many starts as there are groups. */
  readonly inFirstRound: number;
  /** Largest difference, after any start, between the group served most and the one served least among those that still wait. */
  readonly widest: number;
}

/** Compares the turns of groups. `order` has the group of each start, and `sizes` the number of jobs of each group. */
export function turnsOf(order: readonly number[], sizes: readonly number[]): Turns {
  const served = sizes.map(() => 0);
  /** How many groups with waiting jobs had this number of turns. */
  const waiting = new Map([[0, sizes.filter((size) => size > 0).length]]);
  const change = (turns: number, by: number) => waiting.set(turns, (waiting.get(turns) ?? 0) + by);
  let [least, most, widest, different, untilAll, inFirstRound] = [0, 0, 0, 0, 0, 0];
  for (const [i, group] of order.entries()) {
    const before = served[group]!;
    served[group] = before + 1;
    if (before === 0) {
      different += 1;
      untilAll = i + 1;
      if (i < sizes.length) inFirstRound = different;
    }
    change(before, -1);
    if (before + 1 < sizes[group]!) change(before + 1, 1);
    most = Math.max(most, before + 1);
    while (least < most && !waiting.get(least)) least += 1;
    widest = Math.max(widest, most - least);
  }
  return { untilAll, inFirstRound, widest };
}
