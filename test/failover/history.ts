type What = 'I' | 'A' | 'R' | 'U' | 'S' | 'E' | 'C' | 'L';

interface Line {
  readonly what: What;
  readonly id: string;
  /** Ms since 1970. */
  readonly at: number;
}

/** The ends of the jobs of one queue, from the ledger. */
export interface Account {
  readonly added: number;
  readonly acknowledged: number;
  readonly unknown: number;
  /** Acknowledged, but never run to the end. */
  readonly lost: readonly string[];
  /** Refused, but run. */
  readonly phantom: readonly string[];
  readonly settledTwice: readonly string[];
  readonly ranAgain: number;
  /** From the call to its answer, ms. */
  readonly longestAdd: number;
  readonly undecided: number;
}

/** The ledger of a load. */
export class History {
  private readonly lines: readonly Line[];

  constructor(text: string) {
    // The last line may be incomplete.
    this.lines = text
      .split('\n')
      .slice(0, -1)
      .map((line) => {
        const [what, id, at] = line.split(' ');
        return { what: what as What, id: id!, at: Number(at) };
      });
  }

  count(what: What): number {
    return this.lines.filter((line) => line.what === what).length;
  }

  /**
   * When the queue works again: the first add after this moment is acknowledged, and the first such job has run to its
   * end. Undefined if that has not happened yet.
   */
  resumedAt(queue: string, after: number): number | undefined {
    const begun = new Set<string>();
    let acknowledged: number | undefined;
    let ended: number | undefined;
    for (const { what, id, at } of this.lines) {
      if (what === 'I' && at >= after && id.startsWith(`${queue}:`)) begun.add(id);
      else if (what === 'A' && begun.has(id)) acknowledged ??= at;
      else if (what === 'E' && begun.has(id)) ended ??= at;
    }
    return acknowledged && ended && Math.max(acknowledged, ended);
  }

  /** The last moment at which a connection of the role was established. */
  upAt(role: string): number | undefined {
    return this.lines.findLast(({ what, id }) => what === 'L' && id === `${role}-up`)?.at;
  }

  /** The most runs of one group at once that began after this moment. `groupOf`: by the number of the job. */
  mostOfGroup(queue: string, groupOf: (made: number) => number, after: number): number {
    const running = new Map<number, Set<string>>();
    let most = 0;
    for (const { what, id, at } of this.lines) {
      if (!id.startsWith(`${queue}:`) || at < after || (what !== 'S' && what !== 'E')) continue;
      const group = groupOf(Number(id.slice(queue.length + 1)));
      const ids = running.get(group) ?? new Set();
      running.set(group, ids);
      if (what === 'S') ids.add(id);
      else ids.delete(id);
      most = Math.max(most, ids.size);
    }
    return most;
  }

  account(queue: string): Account {
    const of = (what: What) =>
      this.lines.filter((line) => line.what === what && line.id.startsWith(`${queue}:`));
    const ids = (what: What) => new Set(of(what).map(({ id }) => id));
    const times = (what: What) => {
      const counts = new Map<string, number>();
      for (const { id } of of(what)) counts.set(id, (counts.get(id) ?? 0) + 1);
      return counts;
    };
    const begun = new Map(of('I').map(({ id, at }) => [id, at]));
    const answers = [...of('A'), ...of('R'), ...of('U')];
    const started = ids('S');
    const ended = times('E');
    const acknowledged = ids('A');
    return {
      added: begun.size,
      acknowledged: acknowledged.size,
      unknown: ids('U').size,
      lost: [...acknowledged].filter((id) => !ended.has(id)),
      phantom: [...ids('R')].filter((id) => started.has(id)),
      settledTwice: [...times('C')].filter(([, count]) => count > 1).map(([id]) => id),
      ranAgain: [...ended.values()].reduce((sum, count) => sum + count - 1, 0),
      longestAdd: Math.max(0, ...answers.map(({ id, at }) => at - begun.get(id)!)),
      undecided: begun.size - answers.length,
    };
  }
}
