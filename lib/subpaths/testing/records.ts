import type { EnqueueJob, ExchangeAnswer, ExchangeCall } from '../../contract/engine.js';
import type { FireAnswer, FireSchedule } from '../../contract/schedule-verbs.js';
import { decodeBody } from '../../job/job-record.js';
import type { DeadReason, Outcome, SettledRun } from '../../job/outcome.js';
import type { JobOptions } from '../../options/job-options.js';
import type { MadeJob } from '../../producer/job-maker.js';

/**
 * A job that was added.
 *
 * @example
 * expect(testing.queue('email').added()).toMatchObject([{ name: 'welcome', data: { to: 'ada@example.com' }, delay: 600_000 }]);
 */
export interface AddedJob<Data = any> {
  /** The id that was passed, or generated. */
  readonly id: string;
  /** Name of the queue. */
  readonly queue: string;
  /** Name of the job; selects the handler. */
  readonly name: string;
  /** Data after a JSON round trip. */
  readonly data: Data;
  /** The options that were passed; empty if there were none. */
  readonly options: JobOptions;
  /** Delay of the job in ms. */
  readonly delay: number;
  /** When the job was added, by the clock of the test. */
  readonly at: Date;
  /** Id of the schedule that added it, or null. */
  readonly schedule: string | null;
}

/**
 * How a run ended: `retrying` after an error and `snoozed`, both for `delay`; `dead` with `reason`; `cancelled`; `released`, because the
 * application stopped; `lost`, because the worker lost the job.
 */
export type RunOutcome = 'completed' | 'retrying' | 'snoozed' | 'dead' | 'cancelled' | 'released' | 'lost';

/**
 * One run of a job, or its end without a run: `dead` with reason `no-handler` or `expired`.
 *
 * @example
 * expect(await testing.queue('email').runNext()).toMatchObject({ outcome: 'retrying', attempt: 1, delay: 1000 });
 */
export interface JobRun<Data = any> extends Pick<AddedJob<Data>, 'id' | 'queue' | 'name' | 'data'> {
  /** Which attempt it was, from 1. */
  readonly attempt: number;
  /** How it ended. */
  readonly outcome: RunOutcome;
  /** The result of the handler. If workers run by themselves, set only for jobs with `retention`. */
  readonly result?: unknown;
  /** The error. If workers run by themselves, an object with its name, message and stack. */
  readonly error?: unknown;
  /** Why the job is dead. */
  readonly reason?: DeadReason;
  /** Time until the next run, in ms. */
  readonly delay?: number;
}

/** The return value or the error of the handler, which the store keeps only in part. */
export interface Ending {
  readonly result?: unknown;
  readonly error?: unknown;
  readonly isCancelled?: boolean;
}

/** The jobs that were added to one queue and their runs, recorded from the calls to the store. */
export class Records {
  added: AddedJob[] = [];
  runs: JobRun[] = [];
  private readonly bodies = new Map<string, string>();
  private readonly endings = new WeakMap<SettledRun, Ending>();
  private readonly recorded = new WeakMap<SettledRun, JobRun>();

  constructor(private readonly queue: string) {}

  /** Records jobs that were stored. */
  stored(jobs: readonly EnqueueJob[], now: number): void {
    for (const job of jobs) {
      const { given } = job as MadeJob;
      const delay = job.dueAt === undefined ? (job.delayMs ?? 0) : Math.max(0, job.dueAt - now);
      this.add(job, { options: { ...given } as JobOptions, delay, schedule: null }, now);
    }
  }

  /**
   * Records jobs that schedules added. If a schedule added fewer jobs than the call offered (because of `limit` or `overlap`), it
   * added the first ones.
   */
  fired(calls: readonly FireSchedule[], { made }: FireAnswer, now: number): void {
    calls.forEach((call, i) => {
      for (const job of call.jobs.slice(0, made[i] ?? 0)) {
        const delay = Math.max(0, job.dueAt - now);
        this.add(job, { options: {}, delay, schedule: call.id }, now);
      }
    });
  }

  /** Records how a run ended that is about to be settled. */
  ends(run: SettledRun, ending: Ending): void {
    this.endings.set(run, ending);
  }

  exchanged(call: ExchangeCall, answer: ExchangeAnswer): void {
    const lost = new Set(answer.kind === 'exchanged' ? answer.lost : call.settled.map(({ id }) => id));
    for (const run of call.settled) this.settled(run, lost.has(run.id));
    if (answer.kind === 'exchanged') for (const { id, body } of answer.claimed) this.bodies.set(id, body);
  }

  /** The record of a run. */
  of(run: SettledRun): JobRun | undefined {
    return this.recorded.get(run);
  }

  clear(): void {
    this.added = [];
    this.runs = [];
    this.bodies.clear();
  }

  private add(
    { id, body }: { readonly id: string; readonly body: string },
    more: Pick<AddedJob, 'options' | 'delay' | 'schedule'>,
    now: number,
  ): void {
    const decoded = decodeBody(body);
    const { name = '', data } = decoded ?? {};
    this.added.push({ id, queue: this.queue, name, data, ...more, at: new Date(now) });
  }

  private settled(run: SettledRun, isLost: boolean): void {
    const { id, name, attempt } = run;
    const data: unknown = decodeBody(this.bodies.get(id) ?? '')?.data;
    this.bodies.delete(id);
    // A job that was claimed and never started has not run.
    const ending = this.endings.get(run);
    if (run.outcome.kind === 'released' && !ending) return;
    const record = {
      id,
      queue: this.queue,
      name,
      data,
      attempt,
      ...readOutcome(run.outcome, isLost, ending),
    };
    this.runs.push(record);
    this.recorded.set(run, record);
  }
}

function readOutcome(
  outcome: Outcome,
  isLost: boolean,
  ending: Ending = {},
): Pick<JobRun, 'outcome' | 'result' | 'error' | 'reason' | 'delay'> {
  const ended: Ending = { ...stored(outcome), ...ending };
  const { isCancelled, ...seen } = ended;
  if (isLost) return { outcome: 'lost', ...seen };
  switch (outcome.kind) {
    case 'completed':
      return { outcome: 'completed', ...seen };
    case 'retried':
      return { outcome: outcome.counted ? 'retrying' : 'snoozed', delay: outcome.delayMs, ...seen };
    case 'dead':
      return { outcome: 'dead', reason: outcome.reason, ...seen };
    case 'released':
      return { outcome: isCancelled === true ? 'cancelled' : 'released', ...seen };
    default:
      return unknownOutcome(outcome);
  }
}

/** The result or error that the store received, for runs that were not watched. */
function stored(outcome: Outcome): Ending {
  if (outcome.kind === 'completed') {
    const result = outcome.keep?.result;
    return result === undefined ? {} : { result: JSON.parse(result) };
  }
  return 'failure' in outcome && outcome.failure ? { error: outcome.failure } : {};
}

function unknownOutcome(outcome: never): never {
  return outcome;
}
