import type { ExchangeAnswer, ExchangeCall, RungClaim } from '../contract/engine.js';
import type { Bells, RungCall } from './wake/bells.js';
import type { EngineSettings } from './wire/clients.js';
import { inFull, type Arg } from './wire/fixed-args.js';
import type { RedisStore } from './redis-store.js';
import { SEPARATOR } from './codec/replies.js';
import { type LimitedClaim, claim, claimLimited, exchange } from './scripts/work.js';
import { encodeSettled } from './codec/settlement-codec.js';
import { isForgotten } from '../contract/retry.js';

/** More than any claim can have, in bytes. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** The calls of workers: sent at once, or waiting at the doorbell. */
export class RedisExchanges {
  private claimIsKnown = false;
  /** Queues that had limits or groups in their last answer. */
  private readonly limited = new Set<string>();

  constructor(
    private readonly store: RedisStore,
    private readonly bells: Bells,
    private readonly settings: EngineSettings,
    private readonly died: (queue: string, deaths: number) => void,
  ) {}

  readonly exchange = async (queue: string, call: ExchangeCall): Promise<ExchangeAnswer> => {
    const { maxEvents, deadMax, deadAgeMs, completedMax } = this.settings.limitsOf(queue);
    const { worker, seq, leaseMs, want, settled } = call;
    const { lists, completed, nameIndexes } = encodeSettled(settled, maxEvents > 0, worker);
    const args = exchange.encodeBehind(
      exchange.fix(this.store.keysOfWorker(queue, worker)),
      [],
      {
        worker,
        seq,
        pipelined: call.pipelined ? 1 : 0,
        leaseMs,
        want,
        maxBytes: call.maxBytes ?? NO_LIMIT,
        maySuspect: call.maySuspect ? 1 : 0,
        settledEvents: settled.length,
        nameIndexes,
        completed,
        separator: SEPARATOR,
        maxEvents,
        deadMax,
        deadAge: deadAgeMs,
        completedMax,
      },
      lists,
    );
    const exchanged = this.store.call(exchange, args, this.settings.callMs);
    // A separate script claims jobs under limits and groups. If the queue is known to have limits, it is sent right after the
    // exchange. Both have the same number, so each can be repeated if its answer is lost.
    const early = want > 0 && this.limited.has(queue) ? this.claimLimited(queue, call) : null;
    early?.catch(() => undefined);
    const answer = await exchanged;
    this.store.setClock(answer.now);
    if (lists.dead.length > 0) this.died(queue, lists.dead.length / 3);
    const { kind } = answer;
    if (kind !== 'exchanged') {
      // The early claim must not be in flight any more when the exchange ends.
      await early?.catch(() => undefined);
      return answer;
    }
    if (answer.isLimited) this.limited.add(queue);
    else this.limited.delete(queue);
    const limited = early ?? (answer.isLimited && want > 0 ? this.claimLimited(queue, call) : null);
    if (!limited) return answer;
    let claimed = await limited;
    // The claim reached Redis before its exchange, which had to be sent again, so the worker was not known yet.
    if (early && claimed.kind === 'unknown-worker') claimed = await this.claimLimited(queue, call);
    const isNothing = claimed.kind === 'claimed' && claimed.claimed.length === 0 && !answer.isLimited;
    if (claimed.kind === 'plain' || isNothing) return answer;
    if (claimed.kind !== 'claimed') return { kind: claimed.kind };
    const { now: claimedAt, supply, isCut, held, isHeldBack } = claimed;
    // If the limits are newer than the first try of this exchange, the exchange itself may have claimed jobs too.
    const all = [...answer.claimed, ...claimed.claimed];
    return { ...answer, claimed: all, claimedAt, supply, isCut, held, isHeldBack };
  };

  private claimLimited(
    queue: string,
    { worker, seq, pipelined, leaseMs, want, maxBytes = NO_LIMIT, maySuspect, perTurn = 1 }: ExchangeCall,
  ): Promise<LimitedClaim> {
    const args = claimLimited.encodeBehind(
      claimLimited.fix(this.store.keysOfWorker(queue, worker)),
      [],
      {
        worker,
        seq,
        pipelined: pipelined ? 1 : 0,
        leaseMs,
        want,
        maxBytes,
        maySuspect: maySuspect ? 1 : 0,
        perTurn,
        separator: SEPARATOR,
        maxEvents: this.settings.limitsOf(queue).maxEvents,
      },
      {},
    );
    return this.store.call(claimLimited, args, this.settings.callMs);
  }

  claimAtBell(queue: string, call: ExchangeCall, maxMs: number): Promise<RungClaim> | null {
    const args = this.claimOf(queue, call);
    // Sent in full if the server may not know the script: when the doorbell rings, it could not be sent again.
    const made: [string, Arg[]] = this.claimIsKnown ? ['evalsha', args] : ['eval', inFull(claim.text, args)];
    const waiting = this.bells.awaitAndCall(queue, made, maxMs);
    return waiting && this.rungClaim(waiting, args);
  }

  private claimOf(queue: string, { worker, seq, leaseMs, want, maxBytes = NO_LIMIT }: ExchangeCall): Arg[] {
    const { maxEvents } = this.settings.limitsOf(queue);
    return claim.encodeBehind(
      claim.fix(this.store.keysOfWorker(queue, worker)),
      [],
      {
        worker,
        seq,
        leaseMs,
        want,
        maxBytes,
        separator: SEPARATOR,
        maxEvents,
      },
      {},
    );
  }

  private async rungClaim(waiting: Promise<RungCall>, args: Arg[]): Promise<RungClaim> {
    const { member, refusal, reply } = await waiting;
    let answer;
    this.claimIsKnown = !(reply instanceof Error);
    if (reply instanceof Error) {
      if (!isForgotten(reply)) throw reply;
      // The server was restarted, or its scripts were flushed.
      answer = await this.store.call(claim, args, this.settings.callMs);
    } else {
      answer = claim.reply(reply as Parameters<typeof claim.reply>[0]);
    }
    if (answer) {
      // The answer may have waited in the socket while the event loop was blocked.
      answer = { ...answer, ageMs: Math.max(0, this.store.now() - answer.now) };
      this.store.setClock(answer.now);
    }
    const rung = member !== null;
    return { rung, isOfTime: rung && member !== 'work', answer, ...(refusal && { refusal }) };
  }
}
