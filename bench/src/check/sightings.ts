import type { Payload } from '../contender.js';

/** A job that was handled, and when. */
interface Sighting {
  readonly n: number;
  /** `performance.now()` */
  readonly at: number;
}

/** Records handled jobs in order, and waits for more. */
export class Sightings {
  readonly all: Sighting[] = [];
  private readonly waiting = new Set<() => void>();

  add({ n }: Pick<Payload, 'n'>): void {
    this.all.push({ n, at: performance.now() });
    for (const look of this.waiting) look();
  }

  of(n: number): readonly Sighting[] {
    return this.all.filter((one) => one.n === n);
  }

  /** How many different jobs were handled. */
  get jobs(): number {
    return new Set(this.all.map(({ n }) => n)).size;
  }

  /** Resolves when this is true; rejects after `withinMs` with a sentence about what it waited for. */
  until(what: string, holds: () => boolean, withinMs = 20_000): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (!holds()) return;
        this.waiting.delete(look);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.waiting.delete(look);
        reject(new Error(`${what}: not within ${withinMs / 1000} s; seen ${describe(this.all)}`));
      }, withinMs);
      this.waiting.add(look);
      look();
    });
  }

  /** Throws unless each of `count` jobs, from 0 on, was handled exactly this often. */
  expectEach(count: number, times: number): void {
    const runs = new Map<number, number>();
    for (const { n } of this.all) runs.set(n, (runs.get(n) ?? 0) + 1);
    for (let n = 0; n < count; n++) {
      const often = runs.get(n) ?? 0;
      if (often !== times) throw new Error(`job ${n} ran ${often} times where ${times} was expected`);
    }
    if (runs.size !== count) throw new Error(`${runs.size} jobs ran where ${count} were added`);
  }
}

function describe(all: readonly Sighting[]): string {
  const jobs = new Set(all.map(({ n }) => n)).size;
  return `${all.length} runs of ${jobs} jobs`;
}
