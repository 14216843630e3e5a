import { RedisRefusedError, RedisUnavailableError } from '../../errors.js';
import { isSame, type Replication } from '../../options/job-options.js';
import type { Link } from './link.js';
import { inFull, type Arg } from './fixed-args.js';
import { isForgotten } from '../../contract/retry.js';
import type { QueueLinks } from './connections.js';

/** How much longer than its timeout a `WAIT` may take before its connection counts as silent. */
const MARGIN_MS = 1000;
/** Redis ends the wait of a client up to 100 ms late. The answer must still arrive before the deadline. */
const LATE_MS = 200;

/** A script call whose writes are to be replicated, with the arguments of `EVALSHA`. */
interface ReplicatedCall {
  readonly verb: string;
  readonly text: string;
  readonly args: Arg[];
  readonly replication: Replication;
  readonly withinMs: number;
}

/** The reply of the script, and how many replicas confirmed its writes. */
interface Replicated {
  readonly raw: any;
  readonly replicas: number;
}

interface Pending {
  readonly call: ReplicatedCall;
  readonly deadline: number;
  /** Rejects the call if its time ends before its round begins. */
  readonly timer: NodeJS.Timeout;
  readonly resolve: (replicated: Replicated) => void;
  readonly reject: (error: unknown) => void;
  /** Whether to send the script in full, because the server has forgotten it. */
  whole: boolean;
}

/**
 * Runs scripts whose writes must reach replicas. `WAIT` covers the earlier writes of its own connection, and blocks that
 * connection. So these calls have a separate connection and are sent in rounds. A round is all waiting calls, written together,
 * followed by one `WAIT`. The next round begins when the `WAIT` is answered.
 */
class Replicator {
  private pending: Pending[] = [];
  private busy = false;

  constructor(
    private readonly link: Link,
    private readonly callMs: number,
  ) {}

  /** Makes one attempt, and rejects as `Link.send` does. */
  async run(call: ReplicatedCall): Promise<Replicated> {
    const deadline = performance.now() + call.withinMs;
    await this.link.whenUp(call.verb, deadline);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.expire(pending), deadline - performance.now());
      const pending: Pending = { call, deadline, timer, resolve, reject, whole: false };
      this.pending.push(pending);
      this.next();
    });
  }

  private expire(pending: Pending): void {
    const at = this.pending.indexOf(pending);
    if (at < 0) return;
    this.pending.splice(at, 1);
    pending.reject(
      new RedisUnavailableError(pending.call.verb, 'no', 'earlier adds still wait for replicas'),
    );
  }

  private next(): void {
    if (this.busy || this.pending.length === 0) return;
    this.busy = true;
    // Wait until other queues that add in the same tick have added.
    queueMicrotask(() => {
      void this.send(this.take()).then(() => {
        this.busy = false;
        this.next();
      });
    });
  }

  /** The oldest call, and all calls with the same settings. */
  private take(): readonly Pending[] {
    const { replication } = this.pending[0]!.call;
    const round = this.pending.filter(({ call }) => isSame(call.replication, replication));
    this.pending = this.pending.filter(({ call }) => !isSame(call.replication, replication));
    return round;
  }

  private async send(round: readonly Pending[]): Promise<void> {
    const { verb, replication } = round[0]!.call;
    const now = performance.now();
    const deadline = Math.min(...round.map((pending) => pending.deadline));
    const left = deadline - now;
    const waitMs = Math.max(
      1,
      Math.floor(Math.min(replication.timeoutMs, left - Math.min(LATE_MS, left / 2))),
    );
    const answers = round.map(({ call, whole, timer }) => {
      clearTimeout(timer);
      const { verb, text, args } = call;
      if (whole) return this.link.write(verb, 'eval', inFull(text, args), this.callMs, deadline);
      return this.link.write(verb, 'evalsha', args, this.callMs, deadline);
    });
    // Written together with the scripts: after a reconnect, `WAIT` would have no writes to wait for.
    const count = [replication.replicas, waitMs];
    const confirmed: Promise<number> = this.link.write(verb, 'wait', count, waitMs + MARGIN_MS, deadline);
    await Promise.all([
      ...round.map((pending, i) => this.settle(pending, answers[i]!, confirmed)),
      // The connection is blocked until `WAIT` is answered, even if every script has failed.
      confirmed.catch(() => undefined),
    ]);
  }

  private async settle(
    pending: Pending,
    answer: Promise<unknown>,
    confirmed: Promise<number>,
  ): Promise<void> {
    let raw: unknown;
    try {
      raw = await answer;
    } catch (error) {
      if (isForgotten(error) && !pending.whole) {
        // The script did not run, so this round does not cover it. It goes into the next one.
        pending.whole = true;
        this.pending.unshift(pending);
      } else {
        pending.reject(error);
      }
      return;
    }
    try {
      pending.resolve({ raw, replicas: await confirmed });
    } catch (error) {
      pending.reject(this.unconfirmed(pending.call.verb, error));
    }
  }

  /** The error if `WAIT` failed. The script has run in any case. */
  private unconfirmed(verb: string, error: unknown): unknown {
    if (!(error instanceof RedisRefusedError)) return error;
    const { message } = error.cause as Error;
    if (error.reply === 'NOPERM')
      return new RedisRefusedError(verb, error.reply, message, { cause: error }, 'unknown');
    // The server became a replica meanwhile, and replicas cannot `WAIT`. Only a new connection finds the primary.
    this.link.drop(message);
    return new RedisUnavailableError(verb, 'unknown', message, { cause: error });
  }
}

/** A replicator for each connection that carries such calls. */
export class Replicators {
  private readonly made = new WeakMap<Link, Replicator>();

  constructor(
    private readonly links: QueueLinks,
    private readonly callMs: number,
  ) {}

  of(queue: string): Replicator {
    const link = this.links.of(queue);
    let replicator = this.made.get(link);
    if (!replicator) this.made.set(link, (replicator = new Replicator(link, this.callMs)));
    return replicator;
  }

  close(): Promise<void> {
    return this.links.close();
  }
}
