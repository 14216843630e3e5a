import type { Redis } from 'ioredis';
import type { Contender, Feature } from '../contender.js';

/** Checks one thing that a contender offers, by doing it. */
export interface Proof {
  readonly name: string;
  /** The claim, as a row of the table. */
  readonly title: string;
  /** Contenders without this ability are skipped. @default all are checked */
  readonly needs?: Feature;
  /** Rejects with a sentence if the contender does something else. */
  prove(stand: Stand): Promise<void>;
}

/** The servers and processes of a proof. */
export interface Stand {
  readonly contender: Contender;
  readonly url: string;
  /** A connection of the suite itself. */
  readonly control: Redis;
}

/** The order to the process of a proof. */
export interface ProofOrder {
  readonly contender: string;
  readonly proof: string;
  readonly url: string;
}

/** Its answer: nothing is wrong, or what is. */
export type Verdict = { readonly ok: true } | { readonly ok: false; readonly why: string };
