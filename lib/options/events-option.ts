import type { Duration } from '../job/duration.js';
import { boolean, duration, field, integer, shape, type Rule } from './check.js';

/**
 * `false`: no events are written. `max`: how many are kept for readers that resume, up to 10,000,000. `age`: how long they are
 * kept; unlimited by default.
 *
 * @default { max: 10000 }
 */
export type EventsOption =
  | boolean
  | {
      /** How many are kept, up to 10,000,000. @default 10000 */
      readonly max?: number;
      /** How long they are kept. @default no limit */
      readonly age?: Duration;
      /**
       * Approximate maximum size of all events with more than 1 KiB of progress, in bytes; the oldest are removed first.
       *
       * @default 67108864
       */
      readonly maxBytes?: number;
      /**
       * Whether `completed` events contain the `result` of the handler. A result of more than `maxBytes / max` bytes of JSON is
       * left out, and `resultFault` says so.
       *
       * @default false
       */
      readonly results?: boolean;
    };

/** `EventsOption` with every field. */
export interface ResolvedEvents {
  /** 0 if no events are written. */
  readonly max: number;
  /** Null if their age is unlimited. */
  readonly ageMs: number | null;
  readonly maxBytes: number;
  readonly results: boolean;
}

/** Booleans are kept, because `true` means the default number in a module, and in a queue the number of the module. */
type GivenEvents = boolean | Partial<ResolvedEvents>;

const DEFAULT_EVENTS: ResolvedEvents = { max: 10_000, ageMs: null, maxBytes: 67_108_864, results: false };

const readFields = shape({
  max: field('max', integer(0, 10_000_000)),
  age: field('ageMs', duration()),
  maxBytes: field('maxBytes', integer(0, Number.MAX_SAFE_INTEGER)),
  results: field('results', boolean),
});

export const readEvents: Rule<GivenEvents> = (value, path, report) =>
  typeof value === 'boolean' ? value : readFields(value, path, report);

/** If the module has `events: false` and the queue switches them on, the queue gets the default number. */
export function eventsOf(
  given: GivenEvents | undefined,
  inherited: ResolvedEvents = DEFAULT_EVENTS,
): ResolvedEvents {
  if (given === undefined) return inherited;
  if (given === false) return { ...inherited, max: 0 };
  const own = given === true ? {} : given;
  return { ...inherited, max: inherited.max || DEFAULT_EVENTS.max, ...own };
}

/** The largest result in an event, in bytes of JSON: all events with results together stay within `maxBytes`. */
export function maxResultBytes({ max, maxBytes, results }: ResolvedEvents): number {
  return results && max > 0 ? Math.floor(maxBytes / max) : 0;
}
