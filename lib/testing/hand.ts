import { Log } from '../contract/log.js';
import type { ClaimedJob, ExchangeAnswer, QueueEngine } from '../contract/engine.js';
import { MAX_DURATION_MS } from '../job/duration.js';
import type { SettledRun } from '../job/outcome.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import type { FindHandler } from '../worker/handler.js';
import { openClaim } from '../worker/opened-claim.js';
import { writeNote, type Run, type RunVoice } from '../worker/run.js';
import { QueueTestingError } from './errors.js';
import type { JobRun, Records } from './records.js';
import { WatchedExecutor, type Ending } from './watched-executor.js';

let hands = 0;

/** Works on one queue by hand: one job at a time, when told, on the way that every worker goes. */
export class Hand implements RunVoice {
  readonly maxPayloadBytes: number;
  readonly runs = new Map<string, { readonly run: Run; readonly end: Promise<JobRun> }>();
  private worker = newWorker();
  private seq = 0;
  private turn: Promise<unknown> = Promise.resolve();
  private readonly logger = new Log('QueueWorker');
  private readonly ended = new WeakMap<Run, (ending: Ending) => void>();
  private readonly executor: WatchedExecutor;

  constructor(
    private readonly engine: QueueEngine,
    private readonly options: ResolvedQueueOptions,
    private readonly find: FindHandler,
    private readonly records: Records,
  ) {
    this.maxPayloadBytes = options.maxPayloadBytes;
    this.executor = new WatchedExecutor(options, (run, ending) => this.ended.get(run)!(ending));
  }

  get queue(): string {
    return this.options.name;
  }

  /** Runs the next job to its end; null where none can be claimed. `first` is called at the moment before it is. */
  async runNext(first?: () => void): Promise<JobRun | null> {
    const answer = await this.exchange([], 1, first);
    const job = answer.kind === 'exchanged' ? answer.claimed[0] : undefined;
    return job ? this.run(job) : null;
  }

  cancel(id: string, reason: string): void {
    this.runs.get(id)?.run.abort('cancelled', reason);
  }

  async note(run: Run, what: { progress?: string; log?: string }): Promise<void> {
    if (!run.closed) await writeNote(this.engine, this.worker, run, what, this.logger);
  }

  private run(job: ClaimedJob): Promise<JobRun> {
    const { queue, options, find, engine } = this;
    const opened = openClaim(job, {
      queue,
      policy: options.policy,
      find,
      voice: this,
      now: () => engine.now(),
    });
    if (!('run' in opened)) {
      const { name, outcome } = opened;
      return this.settle({ id: job.id, name, attempt: job.failed, durationUs: 0, outcome });
    }
    const { run, handler } = opened;
    const end = this.endOf(run);
    this.runs.set(run.id, { run, end });
    this.executor.start(run, handler);
    return end;
  }

  private async endOf(run: Run): Promise<JobRun> {
    const ending = await new Promise<Ending>((resolve) => this.ended.set(run, resolve));
    this.records.ends(run, ending);
    try {
      return await this.settle(run);
    } finally {
      this.runs.delete(run.id);
    }
  }

  private async settle(run: SettledRun): Promise<JobRun> {
    await this.exchange([run], 0);
    return this.records.of(run)!;
  }

  /** One after the other, since they are numbered. */
  private exchange(
    settled: readonly SettledRun[],
    want: number,
    before?: () => void,
  ): Promise<ExchangeAnswer> {
    const answer = this.turn.then(async () => {
      before?.();
      const first = await this.send(settled, want);
      // The queue was emptied, and this worker with it.
      if (first.kind === 'exchanged' || want === 0) return first;
      before?.();
      const again = await this.send([], want);
      if (again.kind === 'exchanged') return again;
      throw new QueueTestingError(`queue '${this.queue}' cannot be worked on by hand: ${again.kind}`);
    });
    this.turn = answer.catch(() => undefined);
    return answer;
  }

  private async send(settled: readonly SettledRun[], want: number): Promise<ExchangeAnswer> {
    this.seq += 1;
    const { worker, seq } = this;
    // Nobody renews it.
    const call = { worker, seq, leaseMs: MAX_DURATION_MS, want, maySuspect: true, settled };
    const answer = await this.engine.exchange(this.queue, call);
    if (answer.kind !== 'exchanged') {
      this.worker = newWorker();
      this.seq = 0;
    }
    return answer;
  }
}

function newWorker(): string {
  hands += 1;
  return `by-hand.${hands}`;
}
