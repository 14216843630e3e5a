import type { RepairAct } from '../../job/audit-report.js';
import { defineScript } from '../script.js';

/**
 * For a worker: the end of its lease, whether it is known, the length of its leases (empty: not known), how many jobs it holds,
 * and which of the ids asked for.
 */
type RawHolder = readonly [string, number, string, number, readonly string[]];

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
  args: { workers: 'text', all: 'int', max: 'int' },
  /** ids: id. Only used if `all` is 0. */
  lists: ['ids'],
  /** The active set and the record of each worker. */
  reply: (raw: Raw): 'again' | 'large' | RawFacts => {
    if (raw[0] !== 'facts') return raw[0];
    const [, now, holders, ...ids] = raw;
    const unreadable = ids.pop()!;
    return { now, holders, ids, unreadable };
  },
});

export const auditPage = defineScript({
  name: 'audit-page',
  memory: 'read',
  /** bytes: about how much to read of bodies and records. */
  args: { kind: 'text', type: 'text', cursor: 'text', count: 'int', bytes: 'int' },
  /** The active set. Used if `kind` is not one of the other keys. */
  reply: ([cursor, ids, unreadable]: readonly [string, readonly string[], readonly string[]]) => ({
    cursor,
    ids,
    unreadable,
  }),
});

export const repair = defineScript({
  name: 'repair',
  memory: 'allow',
  args: {
    workers: 'text',
    leaseMs: 'int',
    beatMs: 'int',
    keepMs: 'int',
    maxEvents: 'int',
    deadMax: 'int',
    deadAge: 'int',
  },
  /** ids: id. */
  lists: ['ids'],
  /** The active set and the record of each worker. */
  reply: (raw: 'again' | readonly [readonly string[], readonly string[]]) => {
    if (raw === 'again') return raw;
    const [words, orphans] = raw;
    const acts: { act: RepairAct; name: string; place: string }[] = [];
    for (let i = 0; i < words.length; i += 3)
      acts.push({ act: words[i] as RepairAct, name: words[i + 1]!, place: words[i + 2]! });
    return { acts, orphans };
  },
});
