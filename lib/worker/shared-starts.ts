import type { ExchangeAnswer, ExchangeCall, QueueEngine } from '../contract/engine.js';
import type { ShareAnswer, ShareCall } from '../contract/limit-verbs.js';
import { decodeBody } from '../job/job-record.js';

/** A worker that found no place asks again after this time, because a limit may have changed and a wake-up may be lost. */
const ASK_AGAIN_MS = 1_000;

interface SharedStartsParts {
  readonly engine: Pick<QueueEngine, 'exchange' | 'limits' | 'ring'>;
  readonly queue: string;
  /** The shared limits that the queue uses. */
  readonly limits: readonly string[];
  readonly leaseMs: number;
  /** How many jobs this worker runs now. */
  readonly running: () => number;
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
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;

  constructor(private readonly parts: SharedStartsParts) {}

  async exchange(call: ExchangeCall): Promise<ExchangeAnswer> {
    const { engine, queue, running } = this.parts;
    const { want, seq } = call;
    if (this.worker !== call.worker) this.reportedPlaces = 0;
    this.worker = call.worker;
    if (want === 0 && running() >= this.reportedPlaces) return engine.exchange(queue, call);
    this.seq = seq;
    this.granted = null;
    const share = await this.ask({ seq, want });
    if (call.worker === this.worker) this.granted = share.granted;
    const isRefused = want > 0 && share.granted === 0;
    const answer = await engine.exchange(queue, { ...call, want: isRefused ? -1 : share.granted });
    if (call.worker === this.worker) this.granted = 0;
    if (answer.kind !== 'exchanged') return answer;
    const { claimed } = answer;
    const cost = claimed.reduce((sum, { body }) => sum + costOf(body), 0);
    const unused = claimed.length < share.granted && answer.supply !== 'more';
    // Not awaited: if this call is lost, fewer jobs start for a while.
    if (share.granted > 0 && cost !== share.granted)
      this.ask({ seq, kept: cost, running: running() + claimed.length, unused }).catch(() => undefined);
    const isLimited = share.granted < want && claimed.length === share.granted && answer.supply !== 'paused';
    const counted = {
      ...answer,
      claimedAt: Math.min(share.grantedAt, answer.claimedAt),
      startsAtOnce: true,
    } as const;
    if (!isLimited) return counted;
    return {
      ...counted,
      supply: { limitedForMs: Math.min(share.opensInMs ?? ASK_AGAIN_MS, ASK_AGAIN_MS) },
    };
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

/** Few jobs have a cost of their own, and a run decodes its body anyway. So only bodies that may have one are decoded here. */
function costOf(body: string): number {
  return body.includes('"cost":') ? (decodeBody(body)?.options.cost ?? 1) : 1;
}
