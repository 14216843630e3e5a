import { Log } from '../contract/log.js';
import type { StoredJob } from '../contract/admin-verbs.js';
import { messageOf, stackOf } from '../errors/thrown.js';
import type { Job } from '../job/job.js';
import { NO_HEADERS } from '../job/headers.js';
import { decodeBody, type DecodedBody } from '../job/job-record.js';
import { fits } from '../job/name-pattern.js';
import type { DeadReason, FailureRecord, Outcome } from '../job/outcome.js';
import { jobText } from '../job/text.js';
import type { RunTrace } from '../options/telemetry.js';
import { isThenable } from '../job/thenable.js';
import { isObservable } from './observable.js';

/** The events that a listener can be called for. */
export type JobEventType = 'active' | 'completed' | 'failed' | 'dead' | 'stalled';

export const JOB_EVENT_TYPES: readonly JobEventType[] = ['active', 'completed', 'failed', 'dead', 'stalled'];

/** The job of a `JobEvent`. */
export type ListenedJob<Data = unknown> = Pick<
  Job<Data>,
  'id' | 'name' | 'queue' | 'data' | 'headers' | 'attempt' | 'attempts' | 'createdAt'
>;

/** The argument of a method with `@OnJob`. */
export type JobEvent<Data = any> =
  | {
      /** A handler is about to be called. */
      readonly type: 'active';
      /** The job. */
      readonly job: ListenedJob<Data>;
    }
  | {
      /** The job is completed. */
      readonly type: 'completed';
      /** The job. */
      readonly job: ListenedJob<Data>;
      /** The return value of the handler, or the last value of its Observable. */
      readonly result: any;
    }
  | {
      /** An attempt failed. Also sent for the last one. */
      readonly type: 'failed';
      /** The job. */
      readonly job: ListenedJob<Data>;
      /** The error that the handler threw. */
      readonly error: any;
      /** Until the next attempt, in ms; null if the job is dead. */
      readonly delayMs: number | null;
    }
  | {
      /** The job is dead. */
      readonly type: 'dead';
      /** The job. */
      readonly job: ListenedJob<Data>;
      /** The error that the handler threw. For a job that was not run, an `Error` that says why. */
      readonly error: any;
      /** Why it is dead. */
      readonly reason: DeadReason;
    }
  | {
      /** The worker that ran the job went silent, and this process has recovered the job. It runs again, or it is dead. */
      readonly type: 'stalled';
      /** The job. */
      readonly job: ListenedJob<Data>;
      /** How many workers the job has lost. */
      readonly stalls: number;
    };

/** The `JobEvent` of one type or of several. */
export type JobEventOf<Type extends JobEventType, Data = any> = Extract<
  JobEvent<Data>,
  { readonly type: Type }
>;

/** A method with `@OnJob`, and the events it is called for. */
export interface JobListener {
  /** `Class.method`, for messages. */
  readonly label: string;
  readonly types: ReadonlySet<JobEventType>;
  /** Job names or patterns. Undefined means all. */
  readonly names: readonly string[] | undefined;
  readonly call: (event: JobEvent) => unknown;
}

/**
 * Calls the `@OnJob` methods of one queue. `active` is reported when the run begins. The end of a run is reported after the store
 * has confirmed it, so an outcome that did not count is never reported. Only `idle` waits for listeners.
 */
export class JobListeners {
  private readonly logger = new Log('QueueListeners');
  /** Ends of runs that the store has not confirmed, by job id. */
  private readonly unconfirmed = new Map<string, JobEvent[]>();
  private readonly calls = new Set<Promise<unknown>>();

  constructor(
    private readonly queue: string,
    private listeners: readonly JobListener[],
  ) {}

  /** Whether there are no listeners. Workers check it before they prepare a call. */
  get isEmpty(): boolean {
    return this.all.length === 0;
  }

  get all(): readonly JobListener[] {
    return this.listeners;
  }

  replace(listeners: readonly JobListener[]): void {
    this.listeners = listeners;
  }

  began(job: ListenedJob): void {
    this.tell({ type: 'active', job });
  }

  /** @param value the result, or the thrown error. */
  ended(job: ListenedJob, outcome: Outcome, value: unknown): void {
    const events = eventsOf(job, outcome, value).filter((event) => this.heardBy(event).length > 0);
    if (events.length > 0) this.unconfirmed.set(job.id, events);
  }

  /** Records the failure of a job that could not run. */
  unrunnable(id: string, body: DecodedBody | null, attempts: number, outcome: Outcome): void {
    const failure = 'failure' in outcome ? outcome.failure : null;
    if (failure)
      this.ended(jobOf(this.queue, id, body, failure.attempt, attempts), outcome, errorOf(failure));
  }

  /**
   * Called when the store has confirmed the outcomes of an exchange.
   *
   * @param refused jobs whose outcome did not count: lost by the worker, or ended as cancelled instead.
   */
  confirmed(settled: readonly { readonly id: string }[], refused: readonly string[]): void {
    if (this.unconfirmed.size === 0) return;
    for (const { id } of settled) {
      const events = this.unconfirmed.get(id);
      if (!events) continue;
      this.unconfirmed.delete(id);
      if (!refused.includes(id)) for (const event of events) this.tell(event);
    }
  }

  /** Called when the worker lost its lease. Outcomes that were not confirmed do not count. */
  dropped(): void {
    this.unconfirmed.clear();
  }

  /** Called when this process has recovered these jobs from a worker that went silent. */
  recovered(
    ids: readonly string[],
    dead: readonly string[],
    attempts: number,
    get: (id: string) => Promise<StoredJob | null>,
  ): void {
    if (!this.all.some(({ types }) => types.has('stalled') || types.has('dead'))) return;
    const each = async () => {
      for (const id of ids) {
        // oxlint-disable-next-line no-await-in-loop -- one at a time: no job waits for listeners
        const stored = await get(id);
        if (!stored) continue;
        const job = jobOf(this.queue, id, decodeBody(stored.body), stored.failed, attempts);
        this.tell({ type: 'stalled', job, stalls: stored.stalls });
        if (dead.includes(id) && stored.failure)
          this.tell({ type: 'dead', job, reason: 'stalled', error: errorOf(stored.failure) });
      }
    };
    this.follow(
      each().catch((error: unknown) =>
        this.logger.warn(
          `queue '${this.queue}': could not read the stalled jobs for @OnJob('stalled'): ${messageOf(error)}`,
        ),
      ),
    );
  }

  /** Resolves when no listener is running. */
  async idle(): Promise<void> {
    // oxlint-disable-next-line no-await-in-loop -- a call may begin while others end
    while (this.calls.size > 0) await Promise.all(this.calls);
  }

  /** How many listener calls have not ended. */
  get pending(): number {
    return this.calls.size;
  }

  private heardBy({ type, job }: JobEvent): readonly JobListener[] {
    return this.all.filter(
      ({ types, names }) => types.has(type) && (names?.some((name) => fits(name, job.name)) ?? true),
    );
  }

  private tell(event: JobEvent): void {
    for (const listener of this.heardBy(event)) {
      const failed = (error: unknown) => this.logFailure(listener, event, error);
      try {
        const { trace } = event.job as { readonly trace?: RunTrace };
        const returned = trace ? trace.call(() => listener.call(event)) : listener.call(event);
        if (isThenable(returned)) this.follow(Promise.resolve(returned).catch(failed));
        else if (isObservable(returned)) {
          const end = new Promise<void>((complete, error) =>
            returned.subscribe({ next: () => undefined, complete, error }),
          );
          this.follow(end.catch(failed));
        }
      } catch (error) {
        failed(error);
      }
    }
  }

  private follow(call: Promise<unknown>): void {
    this.calls.add(call);
    void call.finally(() => this.calls.delete(call));
  }

  private logFailure({ label }: JobListener, { type, job }: JobEvent, error: unknown): void {
    this.logger.error(
      `${label} failed for '${type}' of ${jobText(this.queue, job.id)}: ${messageOf(error)}; the outcome of the job is not changed`,
      stackOf(error),
    );
  }
}

function eventsOf(job: ListenedJob, outcome: Outcome, value: unknown): JobEvent[] {
  if (outcome.kind === 'completed') return [{ type: 'completed', job, result: value }];
  if (outcome.kind === 'released' || outcome.failure === null) return [];
  if (outcome.kind === 'retried') return [{ type: 'failed', job, error: value, delayMs: outcome.delayMs }];
  const dead: JobEvent = { type: 'dead', job, error: value, reason: outcome.reason };
  return outcome.counted ? [{ type: 'failed', job, error: value, delayMs: null }, dead] : [dead];
}

function jobOf(
  queue: string,
  id: string,
  body: DecodedBody | null,
  attempt: number,
  attempts: number,
): ListenedJob {
  return {
    id,
    queue,
    name: body?.name ?? '',
    data: body?.data,
    headers: body?.options.headers ?? NO_HEADERS,
    attempt,
    attempts: body?.options.attempts ?? attempts,
    createdAt: new Date(body?.createdAt ?? 0),
  };
}

function errorOf({ name, message, stack }: FailureRecord): Error {
  return Object.assign(new Error(message), { name, ...(stack !== undefined && { stack }) });
}
