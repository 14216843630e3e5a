import { Log } from '../contract/log.js';
import type { FailureRecord, Outcome } from '../job/outcome.js';
import { jobText, shortTime } from '../job/text.js';

/** Maximum number of lines of one kind per queue and second. */
const MAX_LINES = 10;
const WINDOW_MS = 1_000;
/** Longest message in a line, in characters. The job keeps the whole error. */
const MAX_MESSAGE = 500;

/** The fields of a job that may be logged: never its data. */
interface FailedJob {
  readonly id: string;
  readonly name: string;
  readonly attempt: number;
  readonly attempts: number;
}

/** Logs failed attempts and dead jobs of one queue. If there are many in a second, it logs a few and counts the rest. */
export class FailureLog {
  private readonly logger = new Log('QueueWorker');
  private readonly failures: Cap | null;
  private readonly deaths: Cap | null;
  private readonly late: Cap;

  constructor(
    private readonly queue: string,
    options: { readonly failures: boolean; readonly deaths: boolean },
  ) {
    const summary = (more: number, what: string) =>
      `queue '${queue}': ${more.toLocaleString('en')} more ${what} within a second, not logged one by one`;
    this.failures = options.failures
      ? new Cap((more) => this.logger.warn(summary(more, `failed attempt${more === 1 ? '' : 's'}`)))
      : null;
    this.deaths = options.deaths
      ? new Cap((more) => this.logger.error(summary(more, `dead job${more === 1 ? '' : 's'}`)))
      : null;
    this.late = new Cap((more) =>
      this.logger.warn(summary(more, `run${more === 1 ? '' : 's'} that ended too late`)),
    );
  }

  /** Logs why the end of a run does not count. */
  tooLate(id: string, why: string): void {
    if (this.late.mayLog()) this.logger.warn(`${jobText(this.queue, id)}: ${why}`);
  }

  /** Logs an attempt that failed. Other outcomes are not logged. */
  ended(job: FailedJob, outcome: Outcome): void {
    if (outcome.kind !== 'dead' && (outcome.kind !== 'retried' || outcome.failure === null)) return;
    const of = `attempt ${job.attempt} of ${job.attempts}`;
    const { failure } = outcome;
    if (outcome.kind === 'retried') {
      if (this.failures?.mayLog())
        this.logger.warn(
          `${this.nameOf(job)}: ${of} failed, next in ${shortTime(outcome.delayMs)}: ${textOf(failure!)}`,
        );
    } else if (this.deaths?.mayLog()) {
      this.logger.error(
        `${this.nameOf(job)} is dead after ${of}, ${outcome.reason}: ${textOf(failure!)}`,
        failure!.stack,
      );
    }
  }

  /** Logs a job that is dead without having run. */
  unrunnable(id: string, outcome: Extract<Outcome, { kind: 'dead' }>): void {
    if (this.deaths?.mayLog())
      this.logger.error(`${jobText(this.queue, id)} is dead: ${clipped(outcome.failure.message)}`);
  }

  /** Logs how many lines were left out so far. */
  flush(): void {
    this.failures?.flush();
    this.deaths?.flush();
    this.late.flush();
  }

  private nameOf({ id, name }: FailedJob): string {
    return `${jobText(this.queue, id)} (${name})`;
  }
}

/** Allows a few lines per second, and reports how many more there were. */
class Cap {
  private count = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly say: (more: number) => void) {}

  mayLog(): boolean {
    this.timer ??= setTimeout(() => this.flush(), WINDOW_MS).unref();
    this.count += 1;
    return this.count <= MAX_LINES;
  }

  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const more = this.count - MAX_LINES;
    this.count = 0;
    if (more > 0) this.say(more);
  }
}

function textOf({ name, message }: FailureRecord): string {
  const text = name === 'Error' || name === 'NonError' ? message : `${name}: ${message}`;
  return clipped(text === '' ? 'an error without a message' : text);
}

/** Shortened, and on one line. */
function clipped(text: string): string {
  const line = text.slice(0, MAX_MESSAGE).replace(/\s*[\r\n]+\s*/g, ' ');
  return text.length <= MAX_MESSAGE ? line : `${line}…`;
}
