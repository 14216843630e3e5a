import type { EnqueueAnswer, EnqueueCall, IdleClaimer } from './engine.js';
import type { EngineSettings } from './clients.js';
import { encodeJobs, encodePlain, isPlain } from './enqueue-codec.js';
import type { FixedArgs } from './fixed-args.js';
import type { RedisStore } from './redis-store.js';
import type { Replicators } from './replicators.js';
import { enqueue } from './scripts/enqueue.js';
import { enqueueClaimed } from './scripts/enqueue-claimed.js';
import { enqueuePlain } from './scripts/enqueue-plain.js';

const STORED = { kind: 'stored', duplicates: [] } as const;

/**
 * The ways of added jobs into Redis, the shortest first: past the line to a worker of this process that is idle, to the end of the
 * line, and any way there is. Each of the first two does all or nothing, and then the next is taken.
 */
export class RedisAdds {
  private readonly claimers = new Map<string, IdleClaimer>();
  private readonly plainOf = new Map<string, FixedArgs>();
  private readonly claimedOf = new Map<string, { readonly worker: string; readonly fixed: FixedArgs }>();

  constructor(
    private readonly store: RedisStore,
    private readonly replicators: Replicators,
    private readonly settings: EngineSettings,
  ) {}

  claimAtAdd(queue: string, claimer: IdleClaimer | null): void {
    if (claimer) this.claimers.set(queue, claimer);
    else this.claimers.delete(queue);
  }

  async enqueue(queue: string, call: EnqueueCall): Promise<EnqueueAnswer> {
    const deadline = performance.now() + call.withinMs;
    // A call that waits for replicas counts them on a connection of its own.
    if (!call.replication) {
      const claimed = this.enqueueClaimed(queue, call);
      if (claimed && (await claimed)) return STORED;
      const stored = this.enqueuePlain(queue, call);
      if (stored && (await stored)) return STORED;
    }
    return this.enqueueAny(queue, call, Math.max(1, deadline - performance.now()));
  }

  /** Whether that was all: the job is plain, new, and claimed by the worker of this process. */
  private enqueueClaimed(queue: string, call: EnqueueCall): Promise<boolean> | false {
    const claimer = this.claimers.get(queue);
    const job = call.jobs[0]!;
    if (!claimer || call.jobs.length > 1 || !isPlain(job)) return false;
    const claim = claimer.begin();
    if (!claim) return false;
    const { worker, seq: claimSeq, leaseMs } = claim;
    const { id, body, name } = job;
    const { seq, rememberMs, withinMs } = call;
    const { maxEvents } = this.settings.limitsOf(queue);
    const values = enqueueClaimed.encodeBehind(
      [this.store.keysOf(queue).lane(call.lane)],
      { seq, rememberMs, id, body, name, worker, claimSeq, leaseMs, maxEvents },
      {},
    );
    const within = Math.min(withinMs, this.settings.callMs);
    return this.store.call(enqueueClaimed, values, within, this.fixedClaimed(queue, worker)).then(
      (now) => {
        if (now !== null) this.store.setClock(now);
        const claimed = [{ id, body, failed: 0, stalls: 0 }];
        claimer.end(claim, now === null ? null : { kind: 'claimed', claimed, held: null });
        return now !== null;
      },
      (error: unknown) => {
        claimer.end(claim, null);
        throw error;
      },
    );
  }

  private fixedClaimed(queue: string, worker: string): FixedArgs {
    const made = this.claimedOf.get(queue);
    if (made?.worker === worker) return made.fixed;
    const keys = this.store.keysOf(queue);
    const { meta, jobs, wait, suspects, prioritized, workers, events } = keys.fixed;
    const own = { worker: keys.worker(worker), active: keys.active(worker) };
    const fixed = enqueueClaimed.fix({ meta, jobs, wait, suspects, prioritized, workers, events, ...own });
    this.claimedOf.set(queue, { worker, fixed });
    return fixed;
  }

  /** Whether that was all: the jobs are plain, new, and stored. */
  private enqueuePlain(queue: string, call: EnqueueCall): Promise<boolean> | false {
    const plain = encodePlain(call.jobs);
    if (!plain) return false;
    const { maxEvents } = this.settings.limitsOf(queue);
    const { seq, rememberMs, withinMs } = call;
    const values = enqueuePlain.encodeBehind(
      [this.store.keysOf(queue).lane(call.lane)],
      { seq, rememberMs, maxEvents, names: maxEvents > 0 ? plain.names : '' },
      { jobs: plain.jobs },
    );
    const within = Math.min(withinMs, this.settings.callMs);
    return this.store.call(enqueuePlain, values, within, this.fixedPlain(queue));
  }

  private fixedPlain(queue: string): FixedArgs {
    const made = this.plainOf.get(queue);
    if (made) return made;
    const { meta, jobs, wait, events, doorbell } = this.store.keysOf(queue).fixed;
    const fixed = enqueuePlain.fix({ meta, jobs, wait, events, doorbell });
    this.plainOf.set(queue, fixed);
    return fixed;
  }

  private async enqueueAny(queue: string, call: EnqueueCall, withinMs: number): Promise<EnqueueAnswer> {
    const { replication } = call;
    const keys = this.store.keysOf(queue);
    const { maxEvents } = this.settings.limitsOf(queue);
    const values = enqueue.encode(
      { ...keys.fixed, lane: keys.lane(call.lane) },
      { seq: call.seq, rememberMs: call.rememberMs, jobs: call.jobs.length, maxEvents },
      encodeJobs(call.jobs, maxEvents > 0, this.store.now()),
    );
    if (!replication) return this.store.call(enqueue, values, Math.min(withinMs, this.settings.callMs));
    const { raw, replicas } = await this.replicators.of(queue).run({
      verb: enqueue.name,
      script: enqueue,
      values,
      replication,
      withinMs,
    });
    const answer = enqueue.reply(raw);
    return answer.kind === 'stored' ? { ...answer, replicas } : answer;
  }
}
