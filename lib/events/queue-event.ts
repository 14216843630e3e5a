import type { EventType, QueueEventBatch, RawEvent } from '../contract/engine.js';
import type { DeadReason, FailureRecord } from '../job/outcome.js';

/** Fields of every event. */
interface EventBase<Type extends EventType> {
  /**
   * Id of the event in its queue, an opaque string whose form may change. Pass the last one you saw to `since` to continue after
   * it. It is not the id of the job (`jobId`), and two queues may use the same ids.
   */
  readonly eventId: string;
  /** What happened. */
  readonly type: Type;
  /** Name of the queue. */
  readonly queue: string;
  /** When it happened, by the clock of Redis. */
  readonly at: Date;
}

interface JobEventBase<Type extends EventType> extends EventBase<Type> {
  /** Id of the job. */
  readonly jobId: string;
  /** Name of the job. */
  readonly name: string;
}

interface RunEventBase<Type extends EventType> extends JobEventBase<Type> {
  /** Number of the attempt, from 1. 0 if the job never ran. */
  readonly attempt: number;
}

/** A job was stored and can be claimed, or (with `keepLast`) waits for the end of another job. */
export interface AddedEvent extends JobEventBase<'added'> {}

/** A job waits for a time before it can be claimed: it was added with a delay, or its handler threw a `Snooze`. */
export interface DelayedEvent extends JobEventBase<'delayed'> {
  /** How long it waits, in milliseconds. */
  readonly delayMs: number;
}

/** A worker has claimed the job. */
export interface ActiveEvent extends RunEventBase<'active'> {}

/** The handler called `job.progress(value)`. */
export interface ProgressEvent extends RunEventBase<'progress'> {
  /** The value. */
  readonly progress: unknown;
}

/**
 * The handler succeeded. Only with the option `events.results` does the event contain the result. Otherwise read it with `Queue.get`,
 * if the job has a `retention`.
 */
export interface CompletedEvent extends RunEventBase<'completed'> {
  /** Wall time of the handler in microseconds. */
  readonly durationUs: number;
  /**
   * The return value of the handler, after a JSON round trip. Absent if it returned nothing, and without the option
   * `events.results`.
   */
  readonly result?: unknown;
  /** Why the result is not in the event, although `events.results` is set: it is too large, or no JSON. */
  readonly resultFault?: string;
}

/** An attempt failed; the job runs again. */
export interface RetryingEvent extends RunEventBase<'retrying'> {
  /** Wall time of the handler in microseconds. */
  readonly durationUs: number;
  /** Time until the next attempt, in milliseconds. */
  readonly delayMs: number;
  /** The error; null if its record cannot be read. */
  readonly error: FailureRecord | null;
}

/** The job is dead: it will not run again unless you retry it. */
export interface DeadEvent extends RunEventBase<'dead'> {
  /** Wall time of the last run in microseconds. 0 if the job did not run. */
  readonly durationUs: number;
  /** The reason. */
  readonly reason: DeadReason;
  /** The last error; null if its record cannot be read. */
  readonly error: FailureRecord | null;
}

/** The worker that held the job is gone; the job is waiting again. */
export interface StalledEvent extends RunEventBase<'stalled'> {}

/** A worker gave the job back, for example because it stops or the handler threw `RateLimited`; the attempt is not counted. */
export interface ReleasedEvent extends RunEventBase<'released'> {}

/** The job was removed before it completed, or a kept job was removed. */
export interface RemovedEvent extends JobEventBase<'removed'> {
  /**
   * `asked`: by `Queue.remove`; `retention`: beyond the number or age of dead jobs; `replaced`: by the next
   * job of its schedule, or a new job has taken the id of one that had ended.
   */
  readonly reason: string;
}

/** The job was cancelled and is gone: before it ran, or after a run that did not complete. */
export interface CancelledEvent extends RunEventBase<'cancelled'> {
  /** The text passed to `cancel`. */
  readonly reason: string;
}

/** Data, due time or priority of the job was changed, by `Queue.update` or `job.update`. */
export interface UpdatedEvent extends JobEventBase<'updated'> {}

/** The queue was paused: no job is claimed from now on. */
export interface PausedEvent extends EventBase<'paused'> {
  /** The event is not about a job. */
  readonly jobId?: undefined;
  /** The event is not about a job. */
  readonly name?: undefined;
}

/** The queue was resumed: jobs are claimed again. */
export interface ResumedEvent extends EventBase<'resumed'> {
  /** The event is not about a job. */
  readonly jobId?: undefined;
  /** The event is not about a job. */
  readonly name?: undefined;
}

/** A circuit breaker opened because too many runs failed. No job starts. */
export interface BreakerOpenedEvent extends EventBase<'breakerOpened'> {
  /** The event is not about a job. */
  readonly jobId?: undefined;
  /** The job name; undefined if the breaker is that of the queue or of a shared limit. */
  readonly name?: string | undefined;
  /** The shared limit; undefined if the breaker is that of the queue or of a job name. */
  readonly limit?: string | undefined;
  /** How long no job starts, in ms. */
  readonly openForMs: number;
}

/** A circuit breaker closed because a job completed. Jobs start again. Not written if `limits.release()` closed it. */
export interface BreakerClosedEvent extends EventBase<'breakerClosed'> {
  /** The event is not about a job. */
  readonly jobId?: undefined;
  /** The job name; undefined if the breaker is that of the queue or of a shared limit. */
  readonly name?: string | undefined;
  /** The shared limit; undefined if the breaker is that of the queue or of a job name. */
  readonly limit?: string | undefined;
}

/** An event of the application's own, written by `Queue.publish`. */
export interface PublishedEvent extends EventBase<'published'> {
  /** The event is not about a job. */
  readonly jobId?: undefined;
  /** The name that was passed to `publish`. */
  readonly name: string;
  /** The payload, after a JSON round trip; null if there was none. */
  readonly payload: unknown;
}

/**
 * Something that happened to a job or to a queue. `type` names it, and narrows to its fields.
 *
 * @example
 * if (event.type === 'completed') console.log(event.jobId, event.durationUs);
 */
export type QueueEvent =
  | AddedEvent
  | DelayedEvent
  | ActiveEvent
  | ProgressEvent
  | CompletedEvent
  | RetryingEvent
  | DeadEvent
  | StalledEvent
  | ReleasedEvent
  | RemovedEvent
  | CancelledEvent
  | UpdatedEvent
  | PausedEvent
  | ResumedEvent
  | BreakerOpenedEvent
  | BreakerClosedEvent
  | PublishedEvent;

/** The events with these types: `EventOf<'completed' | 'dead'>`. */
export type EventOf<Type extends EventType> = Extract<QueueEvent, { readonly type: Type }>;

/** The events that end a job: it does not run again, unless a dead job is retried. */
export type EndEvent = EventOf<'completed' | 'dead' | 'removed' | 'cancelled'>;

const ENDS: ReadonlySet<EventType> = new Set<EndEvent['type']>(['completed', 'dead', 'removed', 'cancelled']);

export function isEnd(event: QueueEvent): event is EndEvent {
  return ENDS.has(event.type);
}

/** The id of an event as users see it. Only this function and `numberOfEvent` know its form. */
function toEventId(number: number): string {
  return String(number);
}

/** The number in an event id. Undefined if the text is not an event id. `'0'` is the id before all others. */
export function numberOfEvent(id: unknown): number | undefined {
  const number = typeof id === 'string' && /^\d{1,16}$/.test(id) ? Number(id) : Number.NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}

/** One event as users see it. Null if this version does not know the type, because a newer version may share the queue. */
export function toQueueEvent(batch: Pick<QueueEventBatch, 'queue' | 'at'>, raw: RawEvent): QueueEvent | null {
  const { queue } = batch;
  const { type, id: jobId, name, attempt, durationUs, delayMs, reason, error } = raw;
  const eventId = toEventId(raw.number);
  const at = new Date(batch.at);
  // Every field is written out, because this runs for each event and spreading shared parts took ten times as long.
  switch (type) {
    case 'added':
    case 'updated':
      return { eventId, type, queue, at, jobId, name };
    case 'delayed':
      return { eventId, type, queue, at, jobId, name, delayMs };
    case 'active':
    case 'stalled':
    case 'released':
      return { eventId, type, queue, at, jobId, name, attempt };
    case 'progress':
      return { eventId, type, queue, at, jobId, name, attempt, progress: parseJson(raw.progress) };
    case 'completed': {
      const { progress: result } = raw;
      if (reason !== '')
        return { eventId, type, queue, at, jobId, name, attempt, durationUs, resultFault: reason };
      if (result === null) return { eventId, type, queue, at, jobId, name, attempt, durationUs };
      return { eventId, type, queue, at, jobId, name, attempt, durationUs, result: parseJson(result) };
    }
    case 'retrying':
      return { eventId, type, queue, at, jobId, name, attempt, durationUs, delayMs, error };
    case 'dead':
      return {
        eventId,
        type,
        queue,
        at,
        jobId,
        name,
        attempt,
        durationUs,
        reason: reason as DeadReason,
        error,
      };
    case 'removed':
      return { eventId, type, queue, at, jobId, name, reason };
    case 'cancelled':
      return { eventId, type, queue, at, jobId, name, attempt, reason };
    case 'paused':
    case 'resumed':
      return { eventId, type, queue, at };
    case 'breakerOpened':
      return {
        eventId,
        type,
        queue,
        at,
        name: name || undefined,
        limit: reason || undefined,
        openForMs: delayMs,
      };
    case 'breakerClosed':
      return { eventId, type, queue, at, name: name || undefined, limit: reason || undefined };
    case 'published':
      return { eventId, type, queue, at, name, payload: parseJson(raw.progress) };
    default:
      return unknownType(type);
  }
}

/** Never throws, because one unreadable event must not delay later ones. */
function parseJson(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function unknownType(_type: never): null {
  return null;
}
