import { randomBytes } from 'node:crypto';
import {
  isLater,
  type Duplicate,
  type EnqueueAnswer,
  type EnqueueCall,
  type EnqueueJob,
  type KeyClaim,
  type QueueEngine,
} from '../contract/engine.js';
import { isPassing, msUntil, pause, repeatDelay } from '../contract/retry.js';
import {
  DuplicateJobError,
  EnqueueBufferFullError,
  GroupFullError,
  QueueFullError,
  NotReplicatedError,
  RedisUnavailableError,
  type Applied,
} from '../errors.js';
import { isSame, strictest, type Replication } from '../options/job-options.js';
import { addResult, type AddResult, type Other } from './add-result.js';
import type { MadeJob } from './job-maker.js';

/** Maximum number of jobs that are stored atomically; a script must not hold Redis for long. */
export const MAX_ATOMIC_JOBS = 1000;
/** Maximum number of jobs in other calls: as delayed jobs, they take Redis about 2 ms. */
export const MAX_CALL_JOBS = 500;
/** Maximum size of jobs that are stored atomically, well below the limit of Redis for one client. */
export const MAX_ATOMIC_BYTES = 32 * 1024 * 1024;
/** Maximum size of one call of a larger bulk: each answer shows that the connection is alive. */
export const MAX_BULK_BYTES = 4 * 1024 * 1024;
/** Maximum size of one call of single adds, so that none waits long for the bytes of others. */
const MAX_CALL_BYTES = 1024 * 1024;
/** How many calls are on their way at once: while Redis works on one, the next is written. */
const LANES = 2;
/**
 * This many adds of one tick are sent before its end: while Redis works on them, the next are created and written. This also holds while a
 * call with a single job is on its way; otherwise two groups of callers would take turns in waiting for each other.
 */
const EARLY_JOBS = 50;
/** No replica is waited for in less than this: Redis ends a wait up to a tenth of a second late. */
const SHORTEST_MS = 250;
const NOW = Promise.resolve();

/** How long adds may take. */
export interface AddTime {
  readonly timeoutMs: number;
  /** Whether the user set that time, so that no call may take longer. The default is extended while bytes move. */
  readonly isBound: boolean;
}

export interface AddLimits extends AddTime {
  /** How many jobs of the queue may wait. */
  readonly maxWaiting?: NonNullable<EnqueueCall['maxWaiting']>;
  /** Single adds that may wait here from one turn of the event loop to the next. */
  readonly maxBuffered: number;
}

interface Waiting {
  readonly job: MadeJob;
  readonly deadline: number;
  readonly resolve: (result: AddResult) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Sends added jobs to the store. Adds of one tick are sent together, many of them in two calls; an add after a single one is sent at
 * once. Each call has the next number of its lane and is repeated under it until it is answered or its time is over, so a lost reply
 * never adds a second job.
 */
export class Enqueuer {
  private readonly free: Lane[];
  private buffer: Waiting[] = [];
  private flushing = false;
  /** Jobs in calls on their way. */
  private underWay = 0;
  /** The ids of those whose callers gave them, and the keys of others. */
  private readonly idsUnderWay = new Set<string>();
  /** The last call was of one job, as likely the next. */
  private isSingle = false;
  /** Of the adds of this tick. */
  private deadline = 0;
  /** The buffer is full. Adds of one tick are never refused, because no answer can arrive within it. */
  private isFull = false;
  /** Rejects adds that have waited too long while every lane is busy. */
  private timer: NodeJS.Timeout | null = null;

  /** For jobs that wait for replicas; separate, so that others never wait for them. */
  private readonly replicated: Enqueuer | null;

  constructor(
    private readonly engine: QueueEngine,
    protected readonly queue: string,
    private readonly limits: AddLimits,
    isLocal = true,
  ) {
    this.free = Array.from({ length: LANES }, () => new Lane(engine, queue, limits));
    this.replicated = isLocal ? new Enqueuer(engine, queue, limits, false) : null;
  }

  add(job: MadeJob): Promise<AddResult> {
    if (job.replication && this.replicated) return this.replicated.add(job);
    const { maxBuffered, timeoutMs } = this.limits;
    if (this.isFull) return Promise.reject(new EnqueueBufferFullError(this.queue, maxBuffered));
    // Within a tick time does not matter.
    if (!this.flushing) this.deadline = performance.now() + timeoutMs;
    return new Promise((resolve, reject) => {
      const { buffer } = this;
      buffer.push({ job, deadline: this.deadline, resolve, reject });
      if (buffer.length === maxBuffered) setImmediate(() => this.lookIfFull());
      // Beside a wait for replicas a tick is nothing, and adds of one tick share it.
      const isEarly =
        buffer.length === EARLY_JOBS
          ? this.underWay <= 1
          : buffer.length === 1 && this.isSingle && this.underWay === 0 && job.replication === null;
      if (isEarly) this.flush();
      else this.schedule();
    });
  }

  /** At most one call, all or none; resolves to the jobs whose id or key others hold. */
  async addAll(jobs: readonly MadeJob[]): Promise<ReadonlyMap<string, Other>> {
    let replication: Replication | null = null;
    for (const job of jobs) replication = strictest(replication, job.replication);
    const sender = (replication && this.replicated) ?? this;
    // A lane of its own: the call must not wait behind, or be mixed with, single adds.
    const lane = sender.free.pop() ?? new Lane(this.engine, this.queue, this.limits);
    try {
      return byId(await lane.send(jobs, performance.now() + this.limits.timeoutMs, replication));
    } finally {
      sender.giveBack(lane);
    }
  }

  private schedule(): void {
    if (this.flushing) return;
    if (this.free.length === 0) return this.watch();
    this.flushing = true;
    // Behind the promise jobs already queued: callers woken by the same reply get into the same call. `queueMicrotask` would make
    // an AsyncResource for it, and tell the hooks of that.
    void NOW.then(() => {
      this.flushing = false;
      this.flush();
    });
  }

  private flush(): void {
    const first = this.buffer[0];
    // They are in the order in which their time is over.
    if (first && first.deadline <= performance.now()) this.refuseLate();
    if (this.buffer.length === 0 || this.free.length === 0) return;
    const batch = this.take();
    if (batch.length === 0) return this.watch();
    if (this.isFull) this.lookIfFull();
    const lane = this.free.pop()!;
    const { deadline, job } = batch[0]!;
    const jobs = batch.map((waiting) => waiting.job);
    this.underWay += batch.length;
    this.isSingle = batch.length === 1;
    void lane.send(jobs, deadline, job.replication).then(
      (duplicates) => {
        const there = duplicates.length > 0 ? byId(duplicates) : null;
        for (const { job: one, resolve, reject } of batch) {
          const other = there?.get(one.id);
          if (other && one.isExclusive)
            reject(new DuplicateJobError(this.queue, other.holder ?? one.id, other.state));
          else resolve(addResult(this.queue, one, other));
        }
        this.ended(lane, batch);
      },
      (error: Error) => {
        if (error instanceof QueueFullError && batch.length > 1)
          return void this.sendWithin(lane, batch, error).finally(() => this.ended(lane, batch));
        if (error instanceof GroupFullError && batch.length > 1)
          return void this.sendParts(lane, batch, error.group).finally(() => this.ended(lane, batch));
        for (const waiting of batch) waiting.reject(error);
        this.ended(lane, batch);
      },
    );
    if (this.buffer.length > 0) this.schedule();
  }

  /** A queue that has not room for all of a call refuses it as a whole: the first of these adds go for which there is room. */
  private async sendWithin(lane: Lane, batch: readonly Waiting[], full: QueueFullError): Promise<void> {
    let room = full.limit - full.waiting;
    const first = batch.filter(({ job }) => isLater(job) || room-- > 0);
    for (const waiting of batch) if (!first.includes(waiting)) waiting.reject(full);
    if (first.length === 0) return;
    const { deadline, job } = first[0]!;
    try {
      const jobs = first.map((waiting) => waiting.job);
      const there = byId(await lane.send(jobs, deadline, job.replication));
      for (const { job: one, resolve } of first) resolve(addResult(this.queue, one, there.get(one.id)));
    } catch (error) {
      if (error instanceof QueueFullError && first.length > 1) await this.sendWithin(lane, first, error);
      else for (const waiting of first) waiting.reject(error as Error);
    }
  }

  /** A full group refuses a call as a whole: the adds of others go without it, and its own one by one. */
  private async sendParts(lane: Lane, batch: readonly Waiting[], group: string): Promise<void> {
    const own = batch.filter(({ job }) => job.group === group);
    const others = batch.filter(({ job }) => job.group !== group);
    for (const part of [...(others.length > 0 ? [others] : []), ...own.map((one) => [one])]) {
      const { deadline, job } = part[0]!;
      const jobs = part.map((waiting) => waiting.job);
      try {
        const there = byId(await lane.send(jobs, deadline, job.replication));
        for (const { job: one, resolve } of part) resolve(addResult(this.queue, one, there.get(one.id)));
      } catch (error) {
        if (error instanceof GroupFullError && part.length > 1) await this.sendParts(lane, part, error.group);
        else for (const waiting of part) waiting.reject(error as Error);
      }
    }
  }

  /** Adds that waited here until their time was over have never been sent, so they are certainly not stored. */
  private refuseLate(): void {
    const now = performance.now();
    const late = this.buffer.findIndex(({ deadline }) => deadline > now);
    const count = late < 0 ? this.buffer.length : late;
    for (const { reject } of this.buffer.splice(0, count)) {
      reject(
        new RedisUnavailableError('add', 'no', `earlier adds took longer than ${this.limits.timeoutMs} ms`),
      );
    }
    if (this.isFull) this.lookIfFull();
  }

  /** No call ends before the time of the first that waits is over, as far as anybody knows. */
  private watch(): void {
    if (this.timer || this.buffer.length === 0) return;
    this.timer = setTimeout(
      () => {
        this.timer = null;
        this.refuseLate();
        this.watch();
      },
      Math.max(1, this.buffer[0]!.deadline - performance.now()),
    ).unref();
  }

  private lookIfFull(): void {
    this.isFull = this.buffer.length >= this.limits.maxBuffered;
  }

  /**
   * The jobs for the next call: as many as fit, with the same replication. A second job with an id waits until the call with the first
   * one has ended; on the other lane it could overtake a repetition of that call.
   */
  private take(): Waiting[] {
    const { replication } = this.buffer[0]!.job;
    let bytes = 0;
    let count = 0;
    for (const { job } of this.buffer) {
      bytes += job.body.length;
      const isFull = count === MAX_CALL_JOBS || (count > 0 && bytes > MAX_CALL_BYTES);
      if (isFull || !isSame(job.replication, replication)) break;
      // Generated ids never collide; of a key, a call has one job.
      const own = job.hasOwnId ? job.id : job.unique && keyOf(job.unique);
      if (own !== undefined) {
        if (this.idsUnderWay.has(own)) break;
        this.idsUnderWay.add(own);
      }
      count += 1;
    }
    if (count < this.buffer.length) return this.buffer.splice(0, count);
    const all = this.buffer;
    this.buffer = [];
    return all;
  }

  private ended(lane: Lane, batch: readonly Waiting[]): void {
    this.underWay -= batch.length;
    if (this.idsUnderWay.size > 0)
      for (const { job } of batch) this.idsUnderWay.delete(job.unique ? keyOf(job.unique) : job.id);
    this.giveBack(lane);
  }

  private giveBack(lane: Lane): void {
    if (this.free.length < LANES) this.free.push(lane);
    if (this.buffer.length > 0) this.schedule();
  }
}

/** One call and its state. */
interface Sending {
  readonly seq: number;
  readonly since: number;
  tries: number;
  /** Whether any try may have stored them. */
  applied: Applied;
  /** Set when they were stored with too few replicas. */
  shortage: NotReplicatedError | undefined;
}

/** Makes one call after another under one name, with rising numbers by which the store recognises repetitions. */
export class Lane {
  private readonly name = randomBytes(6).toString('base64url');
  private seq = 0;

  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: string,
    private readonly time: AddTime & Pick<AddLimits, 'maxWaiting'>,
  ) {}

  /** Resolves to the jobs that hold an id. The call is repeated until it is answered or its time is over. */
  // One promise if the first try succeeds, as nearly every one does: an async function would make two.
  send(
    jobs: readonly EnqueueJob[],
    deadline: number,
    replication: Replication | null,
    sending: Sending = {
      seq: ++this.seq,
      since: performance.now(),
      tries: 0,
      applied: 'no',
      shortage: undefined,
    },
  ): Promise<readonly Duplicate[]> {
    const { seq } = sending;
    const isRepeated = sending.tries++ > 0;
    const { name: lane, time } = this;
    const withinMs = msUntil(deadline);
    const rememberMs = time.timeoutMs * 2;
    const { isBound, maxWaiting } = time;
    const call = { lane, seq, isRepeated, rememberMs, withinMs, isBound, replication, maxWaiting, jobs };
    const again = async (error: unknown): Promise<readonly Duplicate[]> => {
      await this.untilAgain(sending, deadline, error);
      return this.send(jobs, deadline, replication, sending);
    };
    let answered: Promise<EnqueueAnswer>;
    try {
      answered = this.engine.enqueue(this.queue, call);
    } catch (error) {
      return again(error);
    }
    const asked = replication?.replicas ?? 0;
    return answered.then((answer) => {
      if (answer.kind === 'queue-full')
        throw new QueueFullError(this.queue, answer.waiting, maxWaiting!.limit);
      if (answer.kind === 'group-full')
        throw new GroupFullError(this.queue, answer.group, answer.size, answer.maxSize);
      const isStored = answer.kind === 'stored' && (answer.replicas ?? 0) >= asked;
      return isStored ? answer.duplicates : again(this.shortcomingOf(sending, asked, answer));
    }, again);
  }

  private shortcomingOf(sending: Sending, asked: number, answer: EnqueueAnswer): Error {
    if (answer.kind !== 'stored')
      return new RedisUnavailableError('add', 'unknown', 'a later call overtook it');
    const waitedMs = Math.round(performance.now() - sending.since);
    sending.shortage = new NotReplicatedError(this.queue, asked, answer.replicas ?? 0, waitedMs);
    return sending.shortage;
  }

  /** @throws if it is not to be repeated any more. */
  private async untilAgain(sending: Sending, deadline: number, error: unknown): Promise<void> {
    if (error instanceof RedisUnavailableError && error.applied === 'unknown') sending.applied = 'unknown';
    const { shortage, applied, tries } = sending;
    const left = deadline - performance.now();
    // That it was stored is more important than the outcome of the last repetition.
    const enough = shortage === undefined ? 0 : SHORTEST_MS;
    if (!isPassing(error) || left <= enough) throw shortage ?? honest(error, applied);
    await pause(Math.min(repeatDelay(error, tries), left));
  }
}

/** No id has a line break. */
function keyOf({ digest }: KeyClaim): string {
  return `\n${digest}`;
}

function byId(duplicates: readonly Duplicate[]): ReadonlyMap<string, Duplicate> {
  return new Map(duplicates.map((duplicate) => [duplicate.id, duplicate]));
}

/** One repetition may have been refused, or found the connection closed, after another took effect. */
function honest(error: unknown, applied: Applied): unknown {
  if (applied === 'no') return error;
  // The words of the last failure would say that nothing was changed.
  const why = 'an earlier try was not answered, the last one failed';
  return new RedisUnavailableError('add', 'unknown', why, { cause: error });
}
