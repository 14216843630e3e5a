import type { Outcome, SettledRun } from '#lib/job/outcome.js';

export type OutcomeChoice =
  | 'completed'
  | 'kept'
  | 'kept briefly'
  | 'retried'
  | 'retried later'
  | 'retried by rank'
  | 'retried later by rank'
  | 'snoozed'
  | 'dead'
  | 'dead unrun'
  | 'released';

const FAILURE = { name: 'Error', message: 'no luck', attempt: 1 } as const;
const retried = (delayMs: number, priority: number) =>
  ({ kind: 'retried', delayMs, priority, failure: FAILURE, counted: true }) satisfies Outcome;

const OUTCOMES: Record<OutcomeChoice, Outcome> = {
  completed: { kind: 'completed' },
  kept: { kind: 'completed', keep: { forMs: 60_000, result: '{"ok":true}' } },
  'kept briefly': { kind: 'completed', keep: { forMs: 2_000, result: undefined } },
  retried: retried(0, 0),
  'retried later': retried(5_000, 0),
  'retried by rank': retried(0, 2),
  'retried later by rank': retried(5_000, 2),
  snoozed: { kind: 'retried', delayMs: 30_000, priority: 0, failure: null, counted: false },
  dead: {
    kind: 'dead',
    reason: 'unrecoverable',
    failure: { ...FAILURE, reason: 'unrecoverable' },
    counted: true,
  },
  'dead unrun': {
    kind: 'dead',
    reason: 'no-handler',
    failure: { ...FAILURE, reason: 'no-handler' },
    counted: false,
  },
  released: { kind: 'released' },
};

/** A run that ended so; its job failed so often before. */
export function run(id: string, choice: OutcomeChoice, name: string, failed: number): SettledRun {
  return { id, name, attempt: failed + 1, durationUs: 1_500, outcome: OUTCOMES[choice] };
}
