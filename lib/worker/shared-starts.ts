import type { ClaimedJob, ExchangeAnswer, ExchangeCall, QueueEngine } from '../contract/engine.js';
import type { ShareAnswer, ShareCall } from '../contract/limit-verbs.js';
import { Log } from '../contract/log.js';
import { Trouble } from '../contract/trouble.js';
import { inTime, repeatDelay } from '../contract/retry.js';
import { type Applied, RedisUnavailableError } from '../errors.js';
import { decodeBody } from '../job/job-record.js';

/** A worker that found no place asks again after this time, because a limit may have changed and a wake-up may be lost. */
const ASK_AGAIN_MS = 1_000;

/**
 * How long an exchange waits for the limits before it settles without them. Their node may hang, and a stop that waited until the
 * connection counts as silent would lose its outcomes.
 */
const ASK_MS = 1_000;

interface SharedStartsParts {
  readonly engine: Pick<QueueEngine, 'admin' | 'exchange' | 'limits' | 'ring'>;
  readonly queue: string;
  /** The shared limits that the queue uses. */
  readonly limits: readonly string[];
  readonly leaseMs: number;
  /** How many jobs this worker runs now. */
  readonly running: () => number;
  /** Called when the store does not have one of the limits. */
  readonly lost: () => void;
}

/**
 * The exchanges of a queue that uses shared limits. It first asks the limits how many jobs may start, claims at most that many,
 * and gives back unused starts. Its places have a lease, which is renewed while jobs run. So the places of a dead process become
 * free when its lease ends.
 */
export class SharedStarts {
  private worker = '';
  /** The number of places that was last reported to the limits. */
  private reportedPlaces = 0;
  /** The number of the last exchange. The limits ignore places that an earlier call reports. */
  private seq = 0;
  /**
   * Places of the exchange in flight: its jobs may be claimed already, but do not run yet. Null until the limits have answered, also if
   * that answer is lost.
   */
  private granted: number | null = 0;
  /** The last exchange that may have claimed jobs although it failed. */
  private doubted: ExchangeCall | null = null;
  /** The number of the last exchange whose places were given back because it failed. */
  private givenBack = 0;
  /** How many times in a row the limits could not be asked. */
  private failures = 0;
  private timer: NodeJS.Timeout | undefined;
  private hasWaiting = false;
  private askWaitsAt = 0;
  private stopped = false;
  private readonly trouble: Trouble;

  constructor(private readonly parts: SharedStartsParts) {
    const queue = `queue '${parts.queue}'`;
    const fails = `${queue}: cannot ask its shared limits, so no job starts`;
    this.trouble = new Trouble(new Log('QueueWorker'), fails, `${queue}: asks its shared limits again`);
  }

  async exchange(call: ExchangeCall): Promise<ExchangeAnswer> {
    const { engine, queue, running } = this.parts;
    const { want, seq } = call;
    if (this.worker !== call.worker) this.renamed(call.worker);
    if (want === 0) {
      // Not awaited: the limits may be on another node, and outcomes must not wait for that node.
      if (running() < this.reportedPlaces) this.ask({ seq }).catch(() => undefined);
      return engine.exchange(queue, call);
    }
    this.seq = seq;
    this.granted = null;
    let share: ShareAnswer;
    try {
      const asked = this.ask({ seq, want });
      // Without outcomes to store, a slow answer is better than none.
      share = await (call.settled.length > 0 || running() > 0 ? soon(asked) : asked);
      this.failures = 0;
      this.trouble.ended();
    } catch (error) {
      return this.settleOnly(call, error);
    }
    if (call.worker === this.worker) this.granted = share.granted;
    const answer = await this.claim(call, share.granted);
    if (answer.kind !== 'exchanged') {
      // The worker takes a new name. Otherwise the places of this grant would be lost until the lease of the old name is over.
      this.keep(call, [], share.granted, false);
      return answer;
    }
    const { claimed } = answer;
    const unused = claimed.length < share.granted && answer.supply !== 'more';
    this.keep(call, claimed, share.granted, unused);
    const isLimited = share.granted < want && claimed.length === share.granted && answer.supply !== 'paused';
    const counted = {
      ...answer,
      claimedAt: Math.min(share.grantedAt, answer.claimedAt),
      startsAtOnce: true,
    } as const;
    if (!isLimited) return counted;
    // If no start was granted, `supply` tells whether any job waits, but not in a queue with limits or groups of its own.
    const mayWait = share.granted === 0 && answer.supply === 'more';
    const isHeldBack = mayWait && (answer.isLimited !== true || (await this.waits()));
    const againMs = this.givenBack === seq ? 1 : Math.min(share.opensInMs ?? ASK_AGAIN_MS, ASK_AGAIN_MS);
    return { ...counted, isHeldBack, supply: { limitedForMs: againMs } };
  }

  /** Whether any job waits. Asked once a second at most, because only the log needs it. */
  private async waits(): Promise<boolean> {
    const now = performance.now();
    if (now < this.askWaitsAt) return this.hasWaiting;
    this.askWaitsAt = now + ASK_AGAIN_MS;
    const counts = await this.parts.engine.admin.counts(this.parts.queue).catch(() => null);
    this.hasWaiting = (counts?.waiting ?? 0) > 0;
    return this.hasWaiting;
  }

  /** The exchange, if the limits have answered. If it failed and claimed nothing, other queues may use the places. */
  private async claim(call: ExchangeCall, granted: number): Promise<ExchangeAnswer> {
    const { engine, queue } = this.parts;
    const { seq, worker } = call;
    try {
      const answer = await engine.exchange(queue, { ...call, want: granted === 0 ? -1 : granted });
      if (worker === this.worker) this.granted = 0;
      return answer;
    } catch (error) {
      if ((error as { applied?: Applied }).applied !== 'no') this.doubted = call;
      // Until the repetition of such a call is answered, nobody knows whether it has claimed jobs.
      const isDoubted = this.doubted?.seq === seq && this.doubted.worker === worker;
      if (worker === this.worker && !isDoubted && granted > 0) {
        const left = await this.ask({ seq, kept: 0 }).catch(() => null);
        if (left) [this.granted, this.givenBack] = [0, seq];
      }
      throw error;
    }
  }

  /** The limits cannot be asked, so no job may start. But the queue may be on another node, so ended runs are settled. */
  private async settleOnly(call: ExchangeCall, error: unknown): Promise<ExchangeAnswer> {
    this.trouble.failed(error as Error);
    const answer = await this.parts.engine.exchange(this.parts.queue, { ...call, want: -1 });
    if (call.worker === this.worker) this.granted = 0;
    // The limits may have granted starts, and only the answer was lost.
    this.keep(call, answer.kind === 'exchanged' ? answer.claimed : [], -1, false);
    if (answer.kind !== 'exchanged') return answer;
    const limitedForMs = Math.ceil(repeatDelay(error, ++this.failures));
    return { ...answer, startsAtOnce: true, supply: { limitedForMs } };
  }

  /** Reports how many of the granted starts are used. Not awaited: if this call is lost, fewer jobs start for a while. */
  private keep(
    { seq }: ExchangeCall,
    claimed: readonly ClaimedJob[],
    granted: number,
    unused: boolean,
  ): void {
    const kept = claimed.reduce((sum, { body }) => sum + costOf(body), 0);
    if (granted === 0 || kept === granted) return;
    const running = this.parts.running() + claimed.length;
    this.ask({ seq, kept, running, unused }).catch(() => undefined);
  }

  /**
   * The lease of the old name has ended, or the queue was obliterated: its jobs are lost, and their signals have aborted. Without this
   * call, the limits keep the places of the old name for one and a half leases.
   */
  private renamed(worker: string): void {
    if (this.reportedPlaces > 0) this.ask({ seq: this.seq, running: 0 }).catch(() => undefined);
    this.reportedPlaces = 0;
    this.worker = worker;
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private async ask(part: Pick<ShareCall, 'seq'> & Partial<ShareCall>): Promise<ShareAnswer> {
    const { engine, queue, limits, leaseMs } = this.parts;
    const { worker } = this;
    const { want = 0, running = this.parts.running(), kept = null, unused = false } = part;
    const call = { limits, worker, seq: part.seq, running, want, kept, unused, leaseMs };
    const share = await engine.limits.share(queue, call);
    if (share.isLost) this.parts.lost();
    if (worker === this.worker) this.reportedPlaces = running + share.granted;
    this.renewLater();
    for (const other of share.woken) engine.ring(other).catch(() => undefined);
    return share;
  }

  private renewLater(): void {
    if (this.stopped || this.timer !== undefined || this.reportedPlaces === 0) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (this.reportedPlaces === 0) return;
      if (this.granted === null) return this.renewLater();
      const places = this.parts.running() + this.granted;
      this.ask({ seq: this.seq, running: places }).catch(() => this.renewLater());
    }, this.parts.leaseMs / 4).unref();
  }
}

/** The answer of the limits. Rejects if it does not come in time. */
function soon<T>(asked: Promise<T>): Promise<T> {
  const late = () => new RedisUnavailableError('share', 'unknown', 'the limits did not answer');
  return inTime(ASK_MS, asked, late).catch(async (error: unknown) => {
    // If a handler blocked the event loop, the answer may be there but not read yet.
    await new Promise(setImmediate);
    return Promise.race([asked, Promise.reject(error)]);
  });
}

/** Few jobs have a cost of their own, and a run decodes its body anyway. So only bodies that may have one are decoded here. */
function costOf(body: string): number {
  return body.includes('"cost":') ? (decodeBody(body)?.options.cost ?? 1) : 1;
}
