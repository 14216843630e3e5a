import type { Linked } from '../contract/linked-set.js';
import { JobAbortedError, show, type AbortReason } from '../errors.js';
import type { DecodedBody } from '../job/job-record.js';
import type { Outcome, SettledRun } from '../job/outcome.js';
import { encodePayload } from '../job/payload.js';
import type { JobPolicy } from '../options/job-options.js';
import type { CallStage, HandledJob } from './handler.js';
import type { Log } from '../contract/log.js';
import type { QueueEngine } from '../contract/engine.js';
import { jobText } from '../job/text.js';

/** How a run speaks to the store while it runs. */
export interface RunVoice {
  readonly queue: string;
  readonly maxPayloadBytes: number;
  note(run: Run, what: { progress?: string; log?: string }): Promise<void>;
}

const MAX_LOG_LINE = 2000;
const LINE_ENDS = /\s*[\n\r\u0085\u2028\u2029]\s*/g;
/** Controls would forge lines of the log or of the terminal that shows it. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** What is logged may be anything in plain JavaScript, and text of ours must not fail the job. */
function textOf(line: unknown): string {
  try {
    return String(line);
  } catch {
    return show(line);
  }
}

/** One run of one job: what the handler gets, and what is settled when it ends. */
export class Run implements HandledJob, SettledRun, Linked<Run> {
  readonly name: string;
  readonly queue: string;
  /** Replaced by what the schema makes of it. */
  data: unknown;
  readonly attempts: number;
  outcome!: Outcome;
  durationUs = 0;
  readonly startedAt = performance.now();
  timer: NodeJS.Timeout | undefined;
  /** Set once the run has its outcome, or has lost its job: what the handler says later is not heard. */
  closed = false;
  private controller: AbortController | undefined;
  /** Why its signal is aborted, where it is. */
  aborted: JobAbortedError | undefined;
  stage: CallStage | undefined;
  before: Run | undefined;
  after: Run | undefined;
  isIn = false;

  constructor(
    readonly id: string,
    readonly attempt: number,
    readonly stalls: number,
    private readonly body: DecodedBody,
    readonly policy: JobPolicy,
    private readonly voice: RunVoice,
  ) {
    this.name = body.name;
    this.queue = voice.queue;
    this.data = body.data;
    this.attempts = policy.attempts;
  }

  get createdAt(): Date {
    return new Date(this.body.createdAt);
  }

  get priority(): number {
    return this.body.options.priority ?? 0;
  }

  /** Made when it is first looked at: most handlers never do. */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.aborted) this.controller.abort(this.aborted);
    }
    return this.controller.signal;
  }

  /** From now on nothing the handler says is heard. */
  close(): void {
    this.closed = true;
    this.stopTimer();
  }

  /** It is over, and cannot time out any more. */
  stopTimer(): void {
    if (this.timer) clearTimeout(this.timer);
  }

  abort(reason: AbortReason, detail: string): JobAbortedError {
    this.aborted ??= new JobAbortedError(reason, this.id, this.attempt, detail);
    this.controller?.abort(this.aborted);
    return this.aborted;
  }

  progress(value: unknown): Promise<void> {
    return this.say(() => ({
      progress: encodePayload(value, 'progress()', this.voice.maxPayloadBytes, 'the progress of the job'),
    }));
  }

  log(line: string): Promise<void> {
    return this.say(() => ({
      log: textOf(line).slice(0, MAX_LOG_LINE).replace(LINE_ENDS, ' ').replace(CONTROLS, '\ufffd'),
    }));
  }

  private say(what: () => { progress?: string; log?: string }): Promise<void> {
    try {
      const words = what();
      return words.log === '' ? Promise.resolve() : this.voice.note(this, words);
    } catch (error) {
      const refused = Promise.reject(error as Error);
      // Whoever awaits it hears of it; where nobody does, a wrong value must not end the process.
      refused.catch(() => undefined);
      return refused;
    }
  }
}

/** Writes what a run says of itself. Answers whether the worker holds its job, as far as that could be learnt. */
export async function writeNote(
  engine: QueueEngine,
  worker: string,
  run: Run,
  what: { progress?: string; log?: string },
  logger: Log,
): Promise<boolean> {
  const { queue, id, name, attempt } = run;
  try {
    return await engine.note(queue, { worker, id, name, attempt, ...what });
  } catch (error) {
    // Progress is for people; that it could not be written must not fail the job.
    logger.debug(`${jobText(queue, id)}: progress or log not written: ${(error as Error).message}`);
    return true;
  }
}
