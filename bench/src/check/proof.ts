import type { Redis } from 'ioredis';
import type { Contender, Feature } from '../contender.js';

/** One thing a contender says it does, shown by doing it. */
export interface Proof {
  readonly name: string;
  /** What it shows, as a row of the table. */
  readonly title: string;
  /** Who does not offer this is not asked. @default everybody is asked */
  readonly needs?: Feature;
  /** Rejects, in a sentence, where the contender does something else. */
  prove(stand: Stand): Promise<void>;
}

/** What a proof works with. */
export interface Stand {
  readonly contender: Contender;
  readonly url: string;
  /** A connection of the suite itself. */
  readonly control: Redis;
}

/** What the process of a proof is told to do. */
export interface ProofOrder {
  readonly contender: string;
  readonly proof: string;
  readonly url: string;
}

/** What it says: nothing is wrong, or what is. */
export type Verdict = { readonly ok: true } | { readonly ok: false; readonly why: string };
