import { AUDITED } from '../../contract/audit-facts.js';
import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';

/**
 * For a worker: the end of its lease, whether it is known, the length of its leases (empty: not known), how many jobs it holds,
 * and which of the ids asked for.
 */
export type RawHolder = readonly [string, number, string, number, readonly string[]];

type Raw =
  | readonly ['again']
  | readonly ['large']
  | readonly ['facts', number, readonly RawHolder[], ...(readonly string[])[]];

export interface RawFacts {
  readonly now: number;
  /** In the order of the named workers. */
  readonly holders: readonly RawHolder[];
  /** In the order of `AUDITED`. */
  readonly ids: readonly (readonly string[])[];
  /** Counters that cannot be read, as pairs of a key and an id. */
  readonly unreadable: readonly string[];
}

export const audit = defineScript({
  name: 'audit',
  memory: 'read',
  keys: [...AUDITED, 'workers', ...LETTERED_JOBS],
  args: { workers: 'text', all: 'int', max: 'int' },
  /** ids: id. Only used if `all` is 0. */
  lists: ['ids'],
  /** The active set and the record of each worker. */
  moreKeys: true,
  reply: (raw: Raw): 'again' | 'large' | RawFacts => {
    if (raw[0] !== 'facts') return raw[0];
    const [, now, holders, ...ids] = raw;
    const unreadable = ids.pop()!;
    return { now, holders, ids, unreadable };
  },
});
