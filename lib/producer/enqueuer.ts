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
import { QUIET_MS } from '../contract/held-back.js';
import { Log } from '../contract/log.js';
import { isPassing, msUntil, pause, repeatDelay } from '../contract/retry.js';
import {
  DuplicateJobError,
  EnqueueBufferFullError,
  GroupFullError,
  QueueFullError,
  NotReplicatedError,
  RedisRefusedError,
  RedisUnavailableError,
  type Applied,
} from '../errors.js';
import { isSame, strictest, type Replication } from '../options/job-options.js';
import { addResult, type AddResult, type Other, dropped } from './add-result.js';
import type { MadeJob } from './job-maker.js';
import type { ResolvedQueueOptions } from '../options/module-options.js';
import { WHEN_FULL, type ResolvedMaxWaiting } from '../options/bounds.js';

/** Maximum number of jobs that are stored atomically; a script must not hold Redis for long. */
export const MAX_ATOMIC_JOBS = 1000;
/** Maximum number of jobs in all other calls. This many delayed jobs take Redis about 2 ms. */
export const MAX_CALL_JOBS = 500;
/** Maximum size of jobs that are stored atomically, well below the limit of Redis for one client. */
export const MAX_ATOMIC_BYTES = 32 * 1024 * 1024;
/** Maximum size of one call of a larger bulk: each answer shows that the connection is alive. */
export const MAX_BULK_BYTES = 4 * 1024 * 1024;
/** Maximum size of one call of single adds, so that no add waits long for the bytes of others. */
const MAX_CALL_BYTES = 1024 * 1024;
/** Number of calls in flight at once: while Redis works on one, the next is written. */
const LANES = 2;
/**
 * After this many adds in one tick, they are sent before the tick ends. Redis then works on them while the next jobs are created.
 * They are also sent if a call with a single job is in flight. Otherwise two groups of callers would take turns: one of them would always
 * wait for the other.
 */
const EARLY_JOBS = 50;
/** Adds share a call although one has less than half of the time of another, if none has more than this. */
const SHARED_MS = 100;
/** Time for the last try of an add that waits for replicas, because Redis ends a `WAIT` up to 100 ms late. */
const LAST_WAIT_MS = 250;
/** Time for the last try after a refusal. Without its answer it is unknown whether the jobs are stored. */
const LAST_TRY_MS = 100;
const NOW = Promise.resolve();

/** How long adds may take. */
interface AddTime {
  readonly timeoutMs: number;
  /** Whether the user set the time. A time of the user is exact; the default is extended while data is being transferred. */
  readonly isBound: boolean;
}

export interface AddLimits extends AddTime {
  /** How many jobs of the queue may wait. */
  readonly maxWaiting?: NonNullable<EnqueueCall['maxWaiting']>;
  readonly room?: Room;
  /** Maximum number of single adds that wait here from one turn of the event loop to the next. */
  readonly maxBuffered: number;
}

/** An add that waits for its answer. A class for the same reason as `PlainJob`. */
class Waiting {
  constructor(
    readonly job: MadeJob,
    readonly deadline: number,
    readonly resolve: (result: AddResult) => void,
    readonly reject: (error: Error) => void,
  ) {}
}

/**
 * Sends added jobs to the store. Adds of one tick are sent together, in two calls if there are many. If the call before had a
 * single job, the next add is sent at once. Each call has the next number of its lane. It is repeated with that number until the
 * store replies or its time is over, so a lost reply never adds a second job.
 */
export class Enqueuer {
  private readonly free: Lane[];
  private buffer: Waiting[] = [];
  private flushing = false;
  /** Number of jobs in calls in flight. */
  private underWay = 0;
  /** Ids (if the caller chose them) and unique keys of the jobs in flight. */
  private readonly idsUnderWay = new Set<string>();
  /** The last call had one job, so the next one probably has one, too. */
  private isSingle = false;
  /** The deadline of all adds of this tick. */
  private deadline = 0;
  /** The buffer is full. Adds of one tick are never refused, because no answer can arrive within it. */
  private isFull = false;
  /** Rejects adds that have waited too long while every lane is busy. */
  private timer: NodeJS.Timeout | null = null;

  /** The enqueuer of jobs that wait for replicas. It is separate, so that other jobs never wait for them. */
  private readonly replicated: Enqueuer | null;

  constructor(
    protected readonly engine: QueueEngine,
    protected readonly queue: string,
    private readonly limits: AddLimits,
    isLocal = true,
  ) {
    this.free = Array.from({ length: LANES }, () => new Lane(engine, queue, limits));
    this.replicated = isLocal ? new Enqueuer(engine, queue, limits, false) : null;
  }

  /** For calls that need the job: rejects if the job would be dropped. */
  addOrReject(job: MadeJob): Promise<AddResult> {
    return this.add(job);
  }

  add(job: MadeJob): Promise<AddResult> {
    if (job.replication && this.replicated) return this.replicated.add(job);
    const { maxBuffered, timeoutMs } = this.limits;
    if (this.isFull) return Promise.reject(new EnqueueBufferFullError(this.queue, maxBuffered));
    // All adds of one tick share a deadline: reading the clock for each would cost more than it is worth.
    if (!this.flushing) this.deadline = performance.now() + timeoutMs;
    return new Promise((resolve, reject) => {
      const { buffer } = this;
      buffer.push(new Waiting(job, this.deadline, resolve, reject));
      if (buffer.length === maxBuffered) setImmediate(() => this.lookIfFull());
      // A call that waits for replicas is never sent early: a tick is short compared with that wait, and adds of one tick share
      // it.
      const isEarly =
        buffer.length === EARLY_JOBS
          ? this.underWay <= 1
          : buffer.length === 1 && this.isSingle && this.underWay === 0 && job.replication === null;
      if (isEarly) this.flush();
      else this.schedule();
    });
  }

  /** Adds the jobs in one call, all or none. Resolves to the jobs whose id or key another job holds. */
  async addAll(jobs: readonly MadeJob[]): Promise<ReadonlyMap<string, Other>> {
    let replication: Replication | null = null;
    for (const job of jobs) replication = strictest(replication, job.replication);
    const sender = (replication && this.replicated) ?? this;
    // A separate lane, because the call must neither wait for single adds nor be mixed with them.
    const lane = sender.free.pop() ?? new Lane(this.engine, this.queue, this.limits);
    try {
      return byId(await lane.send(jobs, performance.now() + this.limits.timeoutMs, replication));
    } catch (error) {
      this.reportFull(jobs, error);
      throw error;
    } finally {
      sender.giveBack(lane);
    }
  }

  private schedule(): void {
    if (this.flushing) return;
    if (this.free.length === 0) return this.watch();
    this.flushing = true;
    // Runs after the promise jobs that are queued already, so that callers resumed by one reply share the next call.
    // `queueMicrotask` would create an AsyncResource and call the hooks of `async_hooks`.
    void NOW.then(() => {
      this.flushing = false;
      this.flush();
    });
  }

  private flush(): void {
    const first = this.buffer[0];
    // The buffer is sorted by deadline.
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
        this.settle(batch, duplicates);
        this.ended(lane, batch);
      },
      (error: Error) => void this.refused(lane, batch, error).finally(() => this.ended(lane, batch)),
    );
    if (this.buffer.length > 0) this.schedule();
  }

  /** Ends the adds of a call that the store has accepted. */
  private settle(batch: readonly Waiting[], duplicates: readonly Duplicate[]): void {
    const there = duplicates.length > 0 ? byId(duplicates) : null;
    for (const { job, resolve, reject } of batch) {
      const other = there?.get(job.id);
      if (other && !other.dropped && job.isExclusive)
        reject(new DuplicateJobError(this.queue, other.holder ?? job.id, other.state));
      else resolve(addResult(this.queue, job, other));
    }
  }

  /** A full queue or group makes the store refuse the whole call. Then the adds that fit are sent again. Never rejects. */
  private async refused(lane: Lane, batch: readonly Waiting[], error: Error): Promise<void> {
    const isFull = error instanceof QueueFullError || error instanceof GroupFullError;
    if (isFull && batch.length > 1) return this.sendWithin(lane, batch, error);
    const jobs = batch.map(({ job }) => job);
    this.reportFull(jobs, error);
    for (const waiting of batch) waiting.reject(error);
  }

  /** Sends again the first adds for which there is room, and all that need none. Rejects the others. */
  private async sendWithin(
    lane: Lane,
    batch: readonly Waiting[],
    full: QueueFullError | GroupFullError,
  ): Promise<void> {
    const { queue, waiting, limit } = full;
    const group = full instanceof GroupFullError ? full.group : null;
    // The first adds take the room.
    const size = Math.max(waiting, limit);
    const error =
      group === null ? new QueueFullError(queue, size, limit) : new GroupFullError(queue, group, size, limit);
    let room = limit - waiting;
    const rejected: MadeJob[] = [];
    const again = batch.filter(({ job, reject }) => {
      const isFree = isLater(job) || lane.needNoRoom.has(job.id) || (group !== null && job.group !== group);
      if (isFree || room-- > 0) return true;
      rejected.push(job);
      reject(error);
      return false;
    });
    this.reportFull(rejected, error);
    if (again.length > 0) await this.sendAgain(lane, again);
  }

  /** A full queue is reported by `BoundedEnqueuer`, which may wait for room or drop the jobs. */
  private reportFull(jobs: readonly MadeJob[], error: unknown): void {
    if (error instanceof GroupFullError) this.engine.adds?.refused(this.queue, jobs, 'full');
  }

  private async sendAgain(lane: Lane, batch: readonly Waiting[]): Promise<void> {
    const { deadline, job } = batch[0]!;
    try {
      const jobs = batch.map((waiting) => waiting.job);
      this.settle(batch, await lane.send(jobs, deadline, job.replication));
    } catch (error) {
      await this.refused(lane, batch, error as Error);
    }
  }

  /** Rejects adds whose time ended while they waited here. They have never been sent, so they are certainly not stored. */
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

  /** While every lane is busy, rejects waiting adds as soon as their time is over. */
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
   * The jobs for the next call: as many as fit, with the same replication. A second job with the same id waits until the call
   * with the first one has ended. On the other lane it could overtake a repetition of that call.
   */
  private take(): Waiting[] {
    const { job: first, deadline: until } = this.buffer[0]!;
    const { replication } = first;
    const now = performance.now();
    let bytes = 0;
    let count = 0;
    for (const { job, deadline } of this.buffer) {
      // The call ends at the deadline of its first add. After an outage that may be soon, and later adds still have time.
      if (deadline - now > Math.max(2 * (until - now), SHARED_MS)) break;
      bytes += job.body.length;
      const isFull = count === MAX_CALL_JOBS || (count > 0 && bytes > MAX_CALL_BYTES);
      if (isFull || !isSame(job.replication, replication)) break;
      // Generated ids never collide, so they need no check. A call has at most one job for each unique key.
      const { unique } = job;
      const own = unique ? unique.on !== 'aggregate' && keyOf(unique) : job.hasOwnId && job.id;
      if (own) {
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
  /** Whether any try may have stored the jobs. */
  applied: Applied;
  /** Set if the jobs were stored, but too few replicas confirmed it. */
  shortage: NotReplicatedError | undefined;
}

/** Sends one call at a time, with the name of the lane and a rising number. The store recognises repetitions by them. */
export class Lane {
  private readonly name = randomBytes(6).toString('base64url');
  private seq = 0;
  /** If the last call was refused because the queue or a group is full: its jobs that need no room, because they are duplicates. */
  needNoRoom: ReadonlySet<string> = new Set();

  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: string,
    private readonly time: AddTime & Pick<AddLimits, 'maxWaiting' | 'room'>,
  ) {}

  /** Resolves to the jobs that already hold an id. The call is repeated until the store replies or its time is over. */
  // Creates one promise if the first try succeeds, as nearly all do. An async function would create two.
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
    const { adds } = this.engine;
    const again = async (error: unknown): Promise<readonly Duplicate[]> => {
      try {
        await this.untilAgain(sending, deadline, error);
      } catch (fault) {
        // With too few replicas it is stored, and was reported as that.
        if (!sending.shortage) adds?.failed(this.queue, jobs);
        throw fault;
      }
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
      if (answer.kind === 'queue-full' || answer.kind === 'group-full') this.needNoRoom = answer.needNoRoom;
      if (answer.kind === 'queue-full')
        throw new QueueFullError(this.queue, answer.waiting, maxWaiting!.limit, jobs.length);
      if (answer.kind === 'group-full') {
        const { group, size, maxSize } = answer;
        const adds = jobs.filter((job) => job.group === group).length;
        throw new GroupFullError(this.queue, group, size, maxSize, adds);
      }
      if (answer.kind === 'stored' && !sending.shortage)
        adds?.stored(this.queue, jobs, answer.duplicates, answer.removed);
      if (answer.kind === 'stored') time.room?.found(answer.removed);
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

  /** Waits until the next try. @throws {Error} if the call must not be repeated any more. */
  private async untilAgain(sending: Sending, deadline: number, error: unknown): Promise<void> {
    if (error instanceof RedisUnavailableError && error.applied === 'unknown') sending.applied = 'unknown';
    const { shortage, applied, tries } = sending;
    const left = () => deadline - performance.now();
    const lastMs = shortage ? LAST_WAIT_MS : error instanceof RedisRefusedError ? LAST_TRY_MS : 0;
    if (isPassing(error) && left() > lastMs) {
      await pause(Math.min(repeatDelay(error, tries), left() - lastMs));
      // On a busy machine the pause ends late. With less than half of the time, the last try would get no answer.
      if (left() >= lastMs / 2) return;
    }
    // If an earlier try stored the jobs, that error is reported, not the outcome of the last repetition.
    throw shortage ?? honest(error, applied);
  }
}

/** Whether the job may be a duplicate. */
function mayExist({ hasOwnId, unique }: MadeJob): boolean {
  return hasOwnId || unique !== undefined;
}

/** A unique key in the set of ids. No id has a line break, so the two cannot collide. */
function keyOf({ digest }: KeyClaim): string {
  return `\n${digest}`;
}

function byId(duplicates: readonly Duplicate[]): ReadonlyMap<string, Duplicate> {
  return new Map(duplicates.map((duplicate) => [duplicate.id, duplicate]));
}

/** The last try may have failed although an earlier one took effect. Then the error must not say that nothing was stored. */
function honest(error: unknown, applied: Applied): unknown {
  if (applied === 'no') return error;
  // The message of the last failure would say that nothing was changed.
  const why = 'an earlier try was not answered, the last one failed';
  return new RedisUnavailableError('add', 'unknown', why, { cause: error });
}

/**
 * The first wait for room, and the longest. A random part of up to a half is subtracted, so that producers do not all retry at
 * once.
 */
const FIRST_MS = 25;
const LONGEST_MS = 1_000;

/** Creates the enqueuer of one queue; the options decide which. */
export function enqueuerOf(engine: QueueEngine, options: ResolvedQueueOptions, limits: AddLimits): Enqueuer {
  const { name, maxWaiting } = options;
  return maxWaiting
    ? new BoundedEnqueuer(engine, name, limits, maxWaiting)
    : new Enqueuer(engine, name, limits);
}

/** Logs one line when a queue becomes full, and one when it has had room for a while. Without a timer, so the second follows an add. */
export class Room {
  private readonly logger = new Log('Queue');
  private missedAt: number | undefined;

  constructor(
    private readonly queue: string,
    private readonly bound: ResolvedMaxWaiting,
  ) {}

  missed(): void {
    const { limit, onFull } = this.bound;
    if (this.missedAt === undefined)
      this.logger.log(`queue '${this.queue}' is full (maxWaiting ${limit}): ${WHEN_FULL[onFull]}`);
    this.missedAt = performance.now();
  }

  /** @param removed how many jobs were removed to make room. */
  found(removed = 0): void {
    if (removed > 0) return this.missed();
    if (this.missedAt === undefined || performance.now() - this.missedAt < QUIET_MS) return;
    this.missedAt = undefined;
    this.logger.log(`queue '${this.queue}' has room again`);
  }
}

/** Adds to a queue with `maxWaiting`. The store checks for room in the call that adds, so the limit is exact. */
class BoundedEnqueuer extends Enqueuer {
  private readonly room: Room;

  constructor(
    engine: QueueEngine,
    queue: string,
    limits: AddLimits,
    private readonly bound: ResolvedMaxWaiting,
  ) {
    const room = new Room(queue, bound);
    super(engine, queue, { ...limits, room, maxWaiting: { limit: bound.limit, onFull: bound.onFull } });
    this.room = room;
  }

  override add(job: MadeJob): Promise<AddResult> {
    return this.within(
      [job],
      () => super.add(job),
      () => dropped(this.queue, job),
    );
  }

  override addAll(jobs: readonly MadeJob[]): Promise<ReadonlyMap<string, Other>> {
    const none = () => new Map(jobs.map((job) => [job.id, { dropped: true } as const]));
    return this.within(jobs, () => super.addAll(jobs), none);
  }

  override async addOrReject(job: MadeJob): Promise<AddResult> {
    const added = await this.within([job], () => super.add(job));
    const { limit } = this.bound;
    // `dropOldest` found no other job to remove.
    if (added.dropped) throw new QueueFullError(this.queue, limit, limit);
    return added;
  }

  /** @param none the result if the jobs are dropped. Without it, `dropNew` rejects. */
  private async within<T>(jobs: readonly MadeJob[], add: () => Promise<T>, none?: () => T): Promise<T> {
    const { limit, onFull, timeoutMs } = this.bound;
    const signals = jobs.flatMap(({ signal }) => signal ?? []);
    const until = Math.min(performance.now() + timeoutMs, jobs[0]?.roomUntil ?? Infinity);
    for (let tries = 0; ; tries++) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- each try follows the wait for room
        return await add();
      } catch (error) {
        if (!(error instanceof QueueFullError)) throw error;
        this.room.missed();
        if (onFull === 'dropNew' && none) {
          this.engine.adds?.refused(this.queue, jobs, 'dropped');
          return none();
        }
        const left = until - performance.now();
        // A bulk with more new jobs than the limit never fits.
        const isTooLarge = jobs.filter((job) => !isLater(job) && !mayExist(job)).length > limit;
        if (onFull !== 'wait' || isTooLarge || left <= 0) {
          this.engine.adds?.refused(this.queue, jobs, 'full');
          throw error;
        }
        const ms = Math.min(FIRST_MS * 2 ** Math.min(tries, 10), LONGEST_MS) * (0.5 + Math.random() / 2);
        // oxlint-disable-next-line no-await-in-loop
        await pause(Math.min(ms, left), AbortSignal.any(signals));
        for (const signal of signals) signal.throwIfAborted();
      }
    }
  }
}
