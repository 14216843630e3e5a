import { Log } from '../contract/log.js';
import type { FailureRecord, Outcome } from '../job/outcome.js';
import { jobText } from '../job/text.js';

/** Lines of one kind that one queue writes in a second. */
const MAX_LINES = 10;
const WINDOW_MS = 1_000;
/** Characters of a message. The whole error is kept with the job. */
const MAX_MESSAGE = 500;

/** What the lines say of a job: never its data. */
interface FailedJob {
  readonly id: string;
  readonly name: string;
  readonly attempt: number;
  readonly attempts: number;
}

/** Logs failed attempts and dead jobs of one queue; of more than a few in a second only how many there were. */
export class FailureLog {
  private readonly logger = new Log('QueueWorker');
  private readonly failures: Cap | null;
  private readonly deaths: Cap | null;

  constructor(
    private readonly queue: string,
    options: { readonly failures: boolean; readonly deaths: boolean },
  ) {
    const said = (more: number, what: string) =>
      `queue '${queue}': ${more.toLocaleString('en')} more ${what} within a second, not logged one by one`;
    this.failures = options.failures
      ? new Cap((more) => this.logger.warn(said(more, `failed attempt${more === 1 ? '' : 's'}`)))
      : null;
    this.deaths = options.deaths
      ? new Cap((more) => this.logger.error(said(more, `dead job${more === 1 ? '' : 's'}`)))
      : null;
  }

  /** An attempt ended so. */
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

  /** A job is dead that was not run. */
  unrunnable(id: string, outcome: Extract<Outcome, { kind: 'dead' }>): void {
    if (this.deaths?.mayLog())
      this.logger.error(`${jobText(this.queue, id)} is dead: ${clipped(outcome.failure.message)}`);
  }

  /** Says how many were left out so far. */
  flush(): void {
    this.failures?.flush();
    this.deaths?.flush();
  }

  private nameOf({ id, name }: FailedJob): string {
    return `${jobText(this.queue, id)} (${name})`;
  }
}

/** Lets some lines of each second through, and says of how many others it was. */
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

/** On one line. */
function clipped(text: string): string {
  const line = text.slice(0, MAX_MESSAGE).replace(/\s*[\r\n]+\s*/g, ' ');
  return text.length <= MAX_MESSAGE ? line : `${line}…`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** `250 ms`, `4 s`, `1.5 h`: at most one digit behind the point. */
export function shortTime(ms: number): string {
  const [unit, length] = UNITS.find((one) => ms >= one[1]) ?? ['ms', 1];
  return `${Math.round((ms / length) * 10) / 10} ${unit}`;
}
