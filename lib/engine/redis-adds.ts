import { RedisRefusedError } from '../errors.js';
import { BusyWait } from './busy-wait.js';
import type { EnqueueAnswer, EnqueueCall, IdleClaimer } from '../contract/engine.js';
import type { EngineSettings } from './wire/clients.js';
import { inFull, type FixedArgs } from './wire/fixed-args.js';
import type { QueueKeys } from './keys.js';
import { encodeJobs, encodeMuch, encodePlain, isMadeHere, isMuch, isPlain } from './codec/enqueue-codec.js';
import type { RedisStore } from './redis-store.js';
import type { Replicators } from './wire/replicators.js';
import type { Value } from './script.js';
import { enqueue } from './scripts/enqueue.js';
import { enqueueBegin } from './scripts/enqueue-begin.js';
import { enqueueClaimed } from './scripts/enqueue-claimed.js';
import { enqueueEnd } from './scripts/enqueue-end.js';
import { enqueuePlain } from './scripts/enqueue-plain.js';
import { msUntil } from '../contract/retry.js';

type Transaction = [name: string, args: Value[]][];

const STORED: EnqueueAnswer = { kind: 'stored', duplicates: [] };

/** What is the same for all adds to a queue. */
interface Line {
  readonly keys: QueueKeys;
  readonly maxEvents: number;
  /** What stands first in each call of `enqueue-plain`. */
  readonly fixed: FixedArgs;
}

interface Claiming {
  readonly claimer: IdleClaimer;
  readonly line: Line;
  /** What stands first in each call: made once for a name that the worker has. */
  worker: string;
  fixed: FixedArgs | null;
  /** An add that may have to go another way: what is called behind it waits, or it would come before. */
  undecided: Promise<EnqueueAnswer> | null;
}

/**
 * The ways of added jobs into Redis, the shortest first: past the line to a worker of this process that is idle, past Lua to the
 * end of the line, there by a script, and any way there is. Each of them does all or nothing, and then the next is taken.
 */
export class RedisAdds {
  private readonly claiming = new Map<string, Claiming>();
  private readonly lines = new Map<string, Line>();
  private readonly busyWait = new BusyWait();

  constructor(
    private readonly store: RedisStore,
    private readonly replicators: Replicators,
    private readonly settings: EngineSettings,
  ) {}

  claimAtAdd(queue: string, claimer: IdleClaimer | null): void {
    if (!claimer) return void this.claiming.delete(queue);
    const line = this.lineOf(queue);
    this.claiming.set(queue, { claimer, line, worker: '', fixed: null, undecided: null });
  }

  enqueue(queue: string, call: EnqueueCall): Promise<EnqueueAnswer> {
    const deadline = performance.now() + call.withinMs;
    // A call that waits for replicas counts them on a connection of its own.
    if (call.replication) return this.enqueueAny(queue, call, deadline);
    const claiming = this.claiming.get(queue);
    if (!claiming) return this.enqueueLine(queue, call, deadline);
    if (claiming.undecided) return this.enqueueBehind(queue, call, deadline, claiming);
    return this.enqueueClaimed(queue, call, deadline, claiming) ?? this.enqueueLine(queue, call, deadline);
  }

  private async enqueueBehind(
    queue: string,
    call: EnqueueCall,
    deadline: number,
    claiming: Claiming,
  ): Promise<EnqueueAnswer> {
    while (claiming.undecided) await claiming.undecided.catch(() => undefined);
    return this.enqueueClaimed(queue, call, deadline, claiming) ?? this.enqueueLine(queue, call, deadline);
  }

  /** Null where nothing was sent: the job is not plain, or no worker of this process is idle. */
  private enqueueClaimed(
    queue: string,
    call: EnqueueCall,
    deadline: number,
    claiming: Claiming,
  ): Promise<EnqueueAnswer> | null {
    const { claimer, line } = claiming;
    const { keys, maxEvents } = line;
    const job = call.jobs[0]!;
    if (call.jobs.length > 1 || !isPlain(job)) return null;
    const claim = claimer.begin();
    if (!claim) return null;
    const { worker, seq: claimSeq, leaseMs } = claim;
    const { id, body, name } = job;
    const { seq } = call;
    const rememberMs = ttlOf(call);
    if (claiming.worker !== worker || !claiming.fixed) {
      claiming.worker = worker;
      claiming.fixed = enqueueClaimed.fix(this.store.keysOfWorker(queue, worker));
    }
    const args = enqueueClaimed.encodeBehind(
      claiming.fixed,
      [keys.lane(call.lane), keys.bodies(id)],
      { seq, rememberMs, id, body, name, worker, claimSeq, leaseMs, maxEvents },
      {},
    );
    claiming.undecided = this.store.call(enqueueClaimed, args, this.within(deadline)).then(
      (now) => {
        claiming.undecided = null;
        if (now === null) {
          claimer.end(claim, null);
          return this.enqueueLine(queue, call, deadline);
        }
        this.store.setClock(now);
        claimer.end(claim, { kind: 'claimed', claimed: [{ id, body, failed: 0, stalls: 0 }], held: null });
        return STORED;
      },
      (error: unknown) => {
        claiming.undecided = null;
        claimer.end(claim, null);
        throw error;
      },
    );
    return claiming.undecided;
  }

  /** To the end of the line. */
  private enqueueLine(queue: string, call: EnqueueCall, deadline: number): Promise<EnqueueAnswer> {
    const much = this.enqueueMuch(queue, call, deadline);
    if (!much) return this.enqueueScripted(queue, call, deadline);
    return much.then((isDone) => (isDone ? STORED : this.enqueueScripted(queue, call, deadline)));
  }

  private enqueueScripted(queue: string, call: EnqueueCall, deadline: number): Promise<EnqueueAnswer> {
    const stored = this.enqueuePlain(queue, call, deadline);
    if (!stored) return this.enqueueAny(queue, call, deadline);
    this.busyWait.begin();
    return stored.then(
      (isDone) => {
        this.busyWait.end();
        return isDone ? STORED : this.enqueueAny(queue, call, deadline);
      },
      (error: unknown) => {
        this.busyWait.end();
        throw error;
      },
    );
  }

  /**
   * The same of many jobs or large ones, past Lua, which would read each of their bodies twice. Scripts travel in full: one that the
   * server has forgotten could not be sent anew in the middle of a transaction.
   */
  private enqueueMuch(queue: string, call: EnqueueCall, deadline: number): Promise<boolean> | null {
    // What an earlier try may have done is known only once the bodies are written.
    if (call.isRepeated || !isMuch(call.jobs) || !call.jobs.every(isMadeHere)) return null;
    const commands = () => this.transactionOf(queue, call);
    const made = this.store.commands.transact('add', commands, this.within(deadline));
    return made && made.then(areStored, leftToOthers);
  }

  private transactionOf(queue: string, call: EnqueueCall): Transaction | null {
    const { jobs, seq, lane } = call;
    const much = encodeMuch(jobs);
    if (!much) return null;
    const rememberMs = ttlOf(call);
    const { keys, maxEvents } = this.lineOf(queue);
    const { ids, lines, fields, names } = much;
    // Not a copy of all of them, which takes V8 as long as encoding a hundred jobs.
    const { meta, wait, events, doorbell } = keys.fixed;
    const bodies = keys.bodies(ids[0]!);
    const named = { meta, wait, events, doorbell, bodies, lane: keys.lane(lane), undo: keys.undo };
    const begin = enqueueBegin.encode(
      named,
      {
        seq,
        rememberMs,
        maxEvents,
        jobs: jobs.length,
        ids: lines,
        names: maxEvents > 0 ? names : '',
      },
      {},
    );
    return [
      ['eval', inFull(enqueueBegin.text, begin)],
      ['hset', [named.bodies, ...fields]],
      ['rpush', [named.wait, ...ids]],
      ['eval', inFull(enqueueEnd.text, enqueueEnd.encode(named, {}, {}))],
    ];
  }

  /** Whether that was all: the jobs are plain, new, and stored. */
  private enqueuePlain(queue: string, call: EnqueueCall, deadline: number): Promise<boolean> | false {
    const plain = encodePlain(call.jobs);
    if (!plain) return false;
    const { ids, bodies } = plain;
    const { keys, maxEvents, fixed } = this.lineOf(queue);
    const { seq } = call;
    const names = maxEvents > 0 ? plain.names : '';
    const rememberMs = ttlOf(call);
    const args = enqueuePlain.encodeBehind(
      fixed,
      [keys.lane(call.lane), keys.bodies(call.jobs[0]!.id)],
      { seq, rememberMs, maxEvents, jobs: call.jobs.length, ids, bodies, names },
      {},
    );
    return this.store.call(enqueuePlain, args, this.within(deadline));
  }

  private lineOf(queue: string): Line {
    let line = this.lines.get(queue);
    if (!line) {
      const keys = this.store.keysOf(queue);
      const { maxEvents } = this.settings.limitsOf(queue);
      this.lines.set(queue, (line = { keys, maxEvents, fixed: enqueuePlain.fix(keys.fixed) }));
    }
    return line;
  }

  private async enqueueAny(queue: string, call: EnqueueCall, deadline: number): Promise<EnqueueAnswer> {
    const { replication } = call;
    const { keys, maxEvents } = this.lineOf(queue);
    const args = enqueue.encodeBehind(
      enqueue.fix(keys.fixed),
      [keys.lane(call.lane)],
      { seq: call.seq, rememberMs: call.rememberMs, jobs: call.jobs.length, maxEvents },
      encodeJobs(call.jobs, maxEvents > 0, this.store.now()),
    );
    if (!replication) return this.store.call(enqueue, args, this.within(deadline));
    const { raw, replicas } = await this.replicators.of(queue).run({
      verb: enqueue.name,
      text: enqueue.text,
      args,
      replication,
      withinMs: msUntil(deadline),
    });
    const answer = enqueue.reply(raw);
    return answer.kind === 'stored' ? { ...answer, replicas } : answer;
  }

  private within(deadline: number): number {
    return Math.min(msUntil(deadline), this.settings.callMs);
  }
}

/** Redis takes no time of 0, which says that nobody will repeat the call. */
function ttlOf({ rememberMs }: EnqueueCall): number {
  return Math.max(rememberMs, 1);
}

/** @throws the error of what should have stored them, and did not though it was to. */
function areStored([begun, ...written]: unknown[]): boolean {
  if (begun !== 1) return false;
  const failed = written.find((answer) => answer instanceof Error);
  if (failed) throw new RedisRefusedError('add', 'ERR', failed.message, { cause: failed }, 'unknown');
  return true;
}

/** What is refused within a transaction has not been made, and a script is told why in plainer words. */
function leftToOthers(error: unknown): false {
  if (error instanceof RedisRefusedError) return false;
  throw error;
}
