/** How a job behaves when it runs. */
export type Kind = keyof typeof KINDS;

/** `letter`: as it stands in payloads and ledgers. `dead`: how such a job must end, where it must not complete. */
const KINDS = {
  /** Nothing. */
  quick: { letter: 'q' },
  /** Waits some ms. */
  slow: { letter: 's' },
  /** Waits longer than a lease. */
  long: { letter: 'l' },
  /** Fails the first time. */
  flaky: { letter: 'f' },
  /** Throws `UnrecoverableError`. */
  doomed: { letter: 'd', dead: 'unrecoverable' },
  /** Fails as often as it may. */
  hopeless: { letter: 'h', dead: 'retries-exhausted' },
  /** Blocks the event loop longer than a lease. */
  blocker: { letter: 'b' },
  /** Kills its process. */
  poison: { letter: 'p', dead: 'stalled' },
} as const satisfies Record<string, { letter: string; dead?: string }>;

export interface Payload {
  /** The nonce. */
  readonly n: number;
  readonly k: string;
  readonly ms: number;
}

export interface JobPlan {
  readonly kind: Kind;
  readonly ms: number;
  readonly delay: number;
  readonly priority: number;
}

const BY_LETTER = new Map<string, Kind>(
  Object.entries(KINDS).map(([kind, { letter }]) => [letter, kind as Kind]),
);

export function letterOf(kind: Kind): string {
  return KINDS[kind].letter;
}

export function kindOf(letter: string): Kind {
  return BY_LETTER.get(letter)!;
}

/** The reason with which a job of this kind must die; undefined where it must complete. */
export function deathOf(kind: Kind): string | undefined {
  const { dead } = KINDS[kind] as { dead?: string };
  return dead;
}

/** The kind of the job with this nonce. It follows from the seed, so producer and account need not exchange it. */
export function jobPlan(n: number, seed: number, leaseMs: number): JobPlan {
  const lot = mix(n, seed) % 10_000;
  const ms = 1 + (mix(n, seed + 1) % 40);
  const plain = { ms: 0, delay: 0, priority: 0 };
  if (lot < 50) return { ...plain, kind: 'flaky' };
  if (lot < 60) return { ...plain, kind: 'doomed' };
  if (lot < 65) return { ...plain, kind: 'hopeless' };
  if (lot < 75) return { ...plain, kind: 'long', ms: leaseMs + ms * 10 };
  if (lot < 175) return { ...plain, kind: 'slow', ms: 100 + ms * 10 };
  if (lot < 375) return { ...plain, kind: 'quick', delay: 100 + ms * 40 };
  if (lot < 575) return { ...plain, kind: 'slow', ms, priority: ms };
  if (lot < 2_500) return { ...plain, kind: 'slow', ms };
  return { ...plain, kind: 'quick' };
}

/** The id of a job whose producer chooses its ids. */
export function ownId(n: number): string {
  return `j${n}`;
}

/** A whole number that looks random (murmur3's last step). */
function mix(n: number, seed: number): number {
  let h = (n ^ Math.imul(seed, 0x9e3779b1)) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
