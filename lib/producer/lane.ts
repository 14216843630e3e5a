import { randomBytes } from 'node:crypto';
import type { EnqueueJob, QueueEngine } from '../engine/engine.js';
import { isPassing, msUntil, pause, repeatDelay } from '../engine/waiting.js';
import { NotReplicatedError, RedisRefusedError, RedisUnavailableError, type Applied } from '../errors.js';
import type { Replication } from '../options/durability.js';

/** No replica is waited for in less than this: Redis ends a wait up to a tenth of a second late. */
const SHORTEST_MS = 250;

/** Calls one after another under one name with rising numbers, by which the store knows a repetition. */
export class Lane {
  private readonly name = randomBytes(6).toString('base64url');
  private seq = 0;

  constructor(
    private readonly engine: QueueEngine,
    private readonly queue: string,
    private readonly timeoutMs: number,
  ) {}

  /** Answers the ids that were already there. The call is repeated until it is answered as it should be, or its time is over. */
  async send(
    jobs: readonly EnqueueJob[],
    deadline: number,
    replication: Replication | null,
  ): Promise<readonly string[]> {
    const { name: lane, timeoutMs } = this;
    const seq = ++this.seq;
    const since = performance.now();
    let applied: Applied = 'no';
    let shortage: NotReplicatedError | undefined;
    for (let tries = 1; ; tries++) {
      try {
        const withinMs = msUntil(deadline);
        const isRepeated = tries > 1;
        const call = { lane, seq, isRepeated, rememberMs: timeoutMs * 2, withinMs, replication, jobs };
        const answer = await this.engine.enqueue(this.queue, call);
        if (answer.kind !== 'stored')
          throw new RedisUnavailableError('add', 'unknown', 'a later call overtook it');
        const { replicas = 0 } = answer;
        if (replication === null || replicas >= replication.replicas) return answer.duplicates;
        const waitedMs = Math.round(performance.now() - since);
        shortage = new NotReplicatedError(this.queue, replication.replicas, replicas, waitedMs);
        throw shortage;
      } catch (error) {
        if (error instanceof RedisUnavailableError && error.applied === 'unknown') applied = 'unknown';
        const left = deadline - performance.now();
        // That it was stored once says more than what became of the last repetition.
        const enough = shortage === undefined ? 0 : SHORTEST_MS;
        if (!isPassing(error) || left <= enough) throw shortage ?? honest(error, applied);
        await pause(Math.min(repeatDelay(error, tries), left));
      }
    }
  }
}

/** One repetition may have been refused after another took effect. */
function honest(error: unknown, applied: Applied): unknown {
  if (applied === 'no' || !(error instanceof RedisUnavailableError || error instanceof RedisRefusedError))
    return error;
  // The words of the last failure would say that nothing was changed.
  const why = 'an earlier try was not answered, the last one failed';
  return new RedisUnavailableError('add', 'unknown', why, { cause: error });
}
