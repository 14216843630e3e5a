import type { BreakerState } from '../../contract/limit-verbs.js';
import { defineScript } from '../script.js';

type Row = readonly [string, string, string, number, string, number, number, number, string, string];

/** One current limit: the field, its parts, and the rule that results from them, as JSON. */
export interface RawLimit {
  readonly field: string;
  readonly parts: string;
  readonly rule: string;
  readonly blockedForMs: number;
  /** Null: no rate. */
  readonly left: number | null;
  readonly nextInMs: number;
  readonly waiting: number;
  readonly running: number;
  /** Where its line is. */
  readonly line: 'ready' | 'resting' | '';
  /** State of the circuit breaker; empty if there is none. */
  readonly breaker: '' | BreakerState;
}

export const limits = defineScript({
  name: 'limits',
  memory: 'read',
  keys: ['limits', 'limitStates', 'grouped', 'lines', 'lineStates', 'ready', 'resting', 'slots', 'shares'],
  args: { kind: 'text', field: 'text', cursor: 'text', limit: 'int' },
  reply: ([cursor, rows, ready, resting]: readonly [string, readonly Row[], number, number]) => ({
    cursor,
    groups: { ready, resting },
    found: rows.map(
      ([field, parts, rule, blockedForMs, left, nextInMs, waiting, running, line, breaker]): RawLimit => ({
        field,
        parts,
        rule,
        blockedForMs,
        left: left === '' ? null : Number(left),
        nextInMs,
        waiting,
        running,
        line: line as RawLimit['line'],
        breaker: breaker as RawLimit['breaker'],
      }),
    ),
  }),
});
