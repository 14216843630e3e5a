import { randomBytes } from 'node:crypto';
import type { EnqueueAnswer, EnqueueJob, QueueEngine } from '../contract/engine.js';
import { isPassing, msUntil, pause, repeatDelay } from '../contract/retry.js';
import { NotReplicatedError, RedisUnavailableError, type Applied } from '../errors.js';
import type { Replication } from '../options/job-options.js';

/** No replica is waited for in less than this: Redis ends a wait up to a tenth of a second late. */
const SHORTEST_MS = 250;

/** How long adds may take. */
export interface AddTime {
  readonly timeoutMs: number;
  /** Whether the user set that time, so that no call may take longer. The default is extended while bytes move. */
  readonly isBound: boolean;
}

/** One call and its state. */
interface Sending {
  readonly jobs: readonly EnqueueJob[];
  readonly deadline: number;
  readonly replication: Replication | null;
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
    private readonly time: AddTime,
  ) {}

  /** Resolves to the ids that were already there. The call is repeated until it is answered or its time is over. */
  send(
    jobs: readonly EnqueueJob[],
    deadline: number,
    replication: Replication | null,
  ): Promise<readonly string[]> {
    const seq = ++this.seq;
    const since = performance.now();
    return this.attempt({
      jobs,
      deadline,
      replication,
      seq,
      since,
      tries: 0,
      applied: 'no',
      shortage: undefined,
    });
  }

  // One promise where the first try does it, as nearly every one: an async function would make two.
  private attempt(sending: Sending): Promise<readonly string[]> {
    const { jobs, deadline, replication, seq } = sending;
    const { name: lane, time } = this;
    const isRepeated = sending.tries++ > 0;
    const withinMs = msUntil(deadline);
    const rememberMs = time.timeoutMs * 2;
    const call = { lane, seq, isRepeated, rememberMs, withinMs, isBound: time.isBound, replication, jobs };
    let answered: Promise<EnqueueAnswer>;
    try {
      answered = this.engine.enqueue(this.queue, call);
    } catch (error) {
      return this.again(sending, error);
    }
    return answered.then(
      (answer) => {
        const isStored = answer.kind === 'stored' && (answer.replicas ?? 0) >= (replication?.replicas ?? 0);
        return isStored ? answer.duplicates : this.again(sending, this.shortcomingOf(sending, answer));
      },
      (error: unknown) => this.again(sending, error),
    );
  }

  private shortcomingOf(sending: Sending, answer: EnqueueAnswer): Error {
    if (answer.kind !== 'stored')
      return new RedisUnavailableError('add', 'unknown', 'a later call overtook it');
    const waitedMs = Math.round(performance.now() - sending.since);
    const { replicas } = sending.replication!;
    sending.shortage = new NotReplicatedError(this.queue, replicas, answer.replicas ?? 0, waitedMs);
    return sending.shortage;
  }

  private async again(sending: Sending, error: unknown): Promise<readonly string[]> {
    if (error instanceof RedisUnavailableError && error.applied === 'unknown') sending.applied = 'unknown';
    const { deadline, shortage, applied, tries } = sending;
    const left = deadline - performance.now();
    // That it was stored is more important than the outcome of the last repetition.
    const enough = shortage === undefined ? 0 : SHORTEST_MS;
    if (!isPassing(error) || left <= enough) throw shortage ?? honest(error, applied);
    await pause(Math.min(repeatDelay(error, tries), left));
    return this.attempt(sending);
  }
}

/** One repetition may have been refused, or found the connection closed, after another took effect. */
function honest(error: unknown, applied: Applied): unknown {
  if (applied === 'no') return error;
  // The words of the last failure would say that nothing was changed.
  const why = 'an earlier try was not answered, the last one failed';
  return new RedisUnavailableError('add', 'unknown', why, { cause: error });
}
