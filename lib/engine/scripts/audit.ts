import { AUDITED } from '../../contract/audit-facts.js';
import { LETTERED_JOBS } from '../keys.js';
import { defineScript } from '../script.js';

/**
 * A worker's lease end, whether it is known, how long its leases are (empty: not known), how many jobs it holds, and which of
 * those asked for.
 */
export type RawHolder = readonly [string, number, string, number, readonly string[]];

type Raw =
  | readonly ['again']
  | readonly ['large']
  | readonly ['facts', number, readonly RawHolder[], ...(readonly string[])[]];

export interface RawFacts {
  readonly now: number;
  /** In the order of the workers named. */
  readonly holders: readonly RawHolder[];
  /** In the order of `AUDITED`. */
  readonly ids: readonly (readonly string[])[];
  /** Numbers of jobs that cannot be read: a key, an id, and so on. */
  readonly unreadable: readonly string[];
}

export const audit = defineScript({
  name: 'audit',
  memory: 'read',
  keys: [...AUDITED, 'workers', ...LETTERED_JOBS],
  args: { workers: 'text', all: 'int', max: 'int' },
  /** ids: id; only where `all` is 0. */
  lists: ['ids'],
  /** For each worker its active set and its record. */
  moreKeys: true,
  reply: (raw: Raw): 'again' | 'large' | RawFacts => {
    if (raw[0] !== 'facts') return raw[0];
    const [, now, holders, ...ids] = raw;
    const unreadable = ids.pop()!;
    return { now, holders, ids, unreadable };
  },
});
