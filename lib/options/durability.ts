import { InvalidOptionError } from '../errors.js';
import { MAX_TIMER_MS, type Duration } from '../job/duration.js';
import { duration, field, integer, shape, type Rule } from './check.js';

/**
 * When `add` resolves. `'local'`: when the primary has stored the job. `'replicated'`: when a replica confirms that it has it too, so
 * that it survives the loss of the primary; the same as `{ replicas: 1, timeout: '1s' }`. @default 'local'
 */
export type DurabilityOption = 'local' | 'replicated' | ReplicationOptions;

/** How many replicas `add` waits for, and how long. */
export interface ReplicationOptions {
  /** How many replicas must confirm, 1 to 100. @default 1 */
  readonly replicas?: number;
  /**
   * How long one attempt waits for them, 1 ms to 24 days; it is repeated until `enqueueTimeout`. @default '1s'
   */
  readonly timeout?: Duration;
}

/** `ReplicationOptions` with the defaults filled in, in ms. */
export interface Replication {
  readonly replicas: number;
  readonly timeoutMs: number;
}

const ONE_REPLICA: Replication = Object.freeze({ replicas: 1, timeoutMs: 1_000 });

const readReplication = shape({
  replicas: field('replicas', integer(1, 100)),
  timeout: field('timeoutMs', duration(1, MAX_TIMER_MS)),
});

/** Null: local. */
export const readDurability: Rule<Replication | null> = (value, path, report) => {
  if (value === 'local') return null;
  if (value === 'replicated') return ONE_REPLICA;
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const given = readReplication(value, path, report);
    return given && { ...ONE_REPLICA, ...given };
  }
  report(
    new InvalidOptionError(path, "'local', 'replicated', or an object with replicas and timeout", value),
  );
  return undefined;
};

/** The stricter of two: what holds for jobs that are stored together. */
export function strictest(a: Replication | null, b: Replication | null): Replication | null {
  if (a === null || b === null) return a ?? b;
  return {
    replicas: Math.max(a.replicas, b.replicas),
    timeoutMs: Math.max(a.timeoutMs, b.timeoutMs),
  };
}

export function isSame(a: Replication | null, b: Replication | null): boolean {
  return a === b || (a?.replicas === b?.replicas && a?.timeoutMs === b?.timeoutMs);
}
