import { InvalidOptionError } from '../errors.js';
import { MAX_TIMER_MS, type Duration } from '../job/duration.js';
import { boolean, duration, field, integer, oneOrSeveral, refuse, rule, shape } from '../options/check.js';

/** Limits for each queue. */
export interface QueueHealthLimits {
  /** Maximum number of waiting jobs. @default no limit */
  readonly maxWaiting?: number;
  /** How long the oldest waiting job may have waited since it could first run. @default no limit */
  readonly maxOldest?: Duration;
}

/** `QueueHealthIndicator.check(key, options)`. A queue beyond `maxWaiting` or `maxOldest` is `down`. */
export interface QueueHealthOptions extends QueueHealthLimits {
  /** Name of a queue, or of several. @default all registered queues */
  readonly queues?: string | readonly string[];
  /** How long Redis may take to answer, 1 ms to 24 days. @default '1s' */
  readonly timeout?: Duration;
  /** Whether the workers that this process has for these queues must be running. @default true */
  readonly workers?: boolean;
  /** Lower limits; a queue beyond them is `degraded`. @default none */
  readonly degraded?: QueueHealthLimits;
}

/** In ms; absent limits do not apply. */
export interface CheckedLimits {
  readonly maxWaiting?: number;
  readonly maxOldestMs?: number;
}

/** `QueueHealthOptions` with its defaults. */
export interface CheckedHealthOptions {
  /** Undefined for all. */
  readonly queues?: readonly string[];
  readonly timeoutMs: number;
  readonly workers: boolean;
  readonly down: CheckedLimits;
  readonly degraded: CheckedLimits;
}

const LIMITS = {
  maxWaiting: field('maxWaiting', integer(0, Number.MAX_SAFE_INTEGER)),
  maxOldest: field('maxOldestMs', duration()),
} as const;

const readOptions = shape({
  ...LIMITS,
  queues: field('queues', rule(readQueues)),
  timeout: field('timeoutMs', duration(1, MAX_TIMER_MS)),
  workers: field('workers', boolean),
  degraded: field('degraded', shape(LIMITS)),
});

/** @throws {InvalidOptionError} */
export function checkHealthOptions(options: QueueHealthOptions): CheckedHealthOptions {
  const path = 'QueueHealthIndicator.check()';
  const {
    queues,
    timeoutMs = 1_000,
    workers = true,
    degraded = {},
    ...down
  } = readOptions(options, path, refuse)!;
  refuseHigher(`${path}.degraded.maxWaiting`, degraded.maxWaiting, down.maxWaiting);
  refuseHigher(`${path}.degraded.maxOldest`, degraded.maxOldestMs, down.maxOldestMs);
  return { queues, timeoutMs, workers, down, degraded };
}

/** The limits of `degraded` must be below those of `down`. */
function refuseHigher(path: string, degraded: number | undefined, down: number | undefined): void {
  if (degraded === undefined || down === undefined || degraded < down) return;
  const field = path.slice(path.lastIndexOf('.') + 1);
  throw new InvalidOptionError(path, `lower than ${field}, beyond which it is down (${down})`, degraded);
}

/** Checks only the form of the names; whether they are registered is checked by the indicator. */
function readQueues(value: unknown, path: string): readonly string[] {
  const names = oneOrSeveral(value, path);
  if (names.length > 0 && names.every((name) => typeof name === 'string')) return names;
  throw new InvalidOptionError(path, 'the name of a registered queue, or several', value);
}
