import { RedisRefusedError } from '../errors.js';
import { isLater, type EnqueueAnswer, type EnqueueCall, type EnqueueJob } from '../contract/engine.js';
import type { EngineSettings } from './wire/clients.js';
import { inFull, type Arg, type FixedArgs } from './wire/fixed-args.js';
import type { QueueKeys } from './keys.js';
import { letterOf } from '../job/job-id.js';
import { fold, writeGroup } from './codec/event-codec.js';
import type { RedisStore } from './redis-store.js';
import type { Replicators } from './wire/replicator.js';
import type { Value } from './script.js';
import { END, enqueue, enqueueBegin, enqueueEnd, enqueuePlain } from './scripts/adds.js';
import { msUntil } from '../contract/retry.js';

/**
 * Bodies of several jobs are sent as one text if their average length is at most this. For Redis and the client a text is
 * faster than a list.
 */
const MAX_JOINED_CHARS = 2048;
/** From this many jobs or characters on, jobs are added by a transaction, without Lua. */
const MUCH_JOBS = 250;
const MUCH_CHARS = 64 * 1024;

type Transaction = [name: string, args: Value[]][];

const STORED: EnqueueAnswer = { kind: 'stored', duplicates: [] };

/** The arguments that all adds to a queue share. */
interface QueueArgs {
  readonly keys: QueueKeys;
  readonly maxEvents: number;
  /** The first arguments of each call of `enqueue-plain`. */
  readonly fixed: FixedArgs;
}

/** A call in flight, and the time at which it ends. */
interface Add {
  readonly queue: string;
  readonly call: EnqueueCall;
  readonly deadline: number;
}

/**
 * The ways to add. Each stores all jobs of a call or none. A call takes the first way that fits its jobs, and the full script if that
 * way stored none. A way that gains less than 15 % for its jobs is removed.
 *
 * | Way | For | Gain against the next one |
 * |---|---|---|
 * | `byTransaction` | plain jobs with generated ids, at least 250 of them or 64 KB of bodies | CPU of Redis per job: 2.3 -> 1.2 us with 1,000 small jobs a call, 2.2 -> 1.6 us with 250, 18 -> 9 us with 100 of 4 KB |
 * | `byPlainScript` | one plain job; or several with generated ids and bodies of at most 2 KB on average | with 50 small jobs a call 46 % more jobs/s, CPU of Redis per job 4.0 -> 3.0 us |
 * | `byFullScript` | any jobs, and calls that wait for replicas | |
 *
 * A plain job has no priority, no group and no time. A way returns null if it does not fit these jobs or is not possible now. Then nothing was
 * sent.
 */
export class RedisAdds {
  private readonly queues = new Map<string, QueueArgs>();

  constructor(
    private readonly store: RedisStore,
    private readonly replicators: Replicators,
    private readonly settings: EngineSettings,
  ) {}

  readonly enqueue = (queue: string, call: EnqueueCall): Promise<EnqueueAnswer> => {
    const now = performance.now();
    if (!this.store.isKnown(queue, now)) {
      const check = this.store.checkQueue(queue);
      if (check) return check.then(() => this.enqueue(queue, call));
      this.store.makeKnown([queue]);
    }
    const add = { queue, call, deadline: now + call.withinMs };
    // A call that waits for replicas uses a separate connection.
    if (call.replication || call.maxWaiting) return this.byFullScript(add);
    const { jobs } = call;
    const isOneSmall = jobs.length === 1 && jobs[0]!.body.length < MUCH_CHARS;
    const stored = (isOneSmall ? null : this.byTransaction(add)) ?? this.byPlainScript(add);
    if (!stored) return this.byFullScript(add);
    return stored.then((isDone) => (isDone ? STORED : this.byFullScript(add)));
  };

  /**
   * Adds jobs without Lua, which would read each body twice. The scripts around it are sent in full: inside a transaction a
   * forgotten script could not be sent again.
   */
  private byTransaction(add: Add): Promise<boolean> | null {
    const { queue, call } = add;
    // Only after the bodies are written does a script know whether an earlier try had stored them.
    if (call.isRepeated || !isMuch(call.jobs) || !call.jobs.every(isMadeHere)) return null;
    const commands = () => this.transactionOf(queue, call);
    const made = this.store.commands.transact('add', commands, ...this.timeOf(add));
    return made && made.then(areStored, leftToOthers);
  }

  private transactionOf(queue: string, call: EnqueueCall): Transaction | null {
    const { jobs, seq, lane } = call;
    const much = encodeMuch(jobs);
    if (!much) return null;
    const rememberMs = ttlOf(call);
    const { keys, maxEvents } = this.queues.get(queue) ?? this.argsOf(queue);
    const { ids, lines, fields, names } = much;
    // Names only the needed keys. Copying all keys takes V8 as long as encoding a hundred jobs.
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

  private byPlainScript(add: Add): Promise<boolean> | null {
    const { queue, call } = add;
    const plain = encodePlain(call.jobs);
    if (!plain) return null;
    const { keys, maxEvents, fixed } = this.queues.get(queue) ?? this.argsOf(queue);
    // The arguments in the order of the descriptor. A time of 0 would mean that the call is never repeated.
    const args: Arg[] = [
      fixed,
      keys.lane(call.lane),
      keys.bodies(call.jobs[0]!.id),
      call.seq,
      Math.max(call.rememberMs, 1),
      maxEvents,
      call.jobs.length,
      plain.ids,
      plain.bodies,
      maxEvents > 0 ? plain.names : '',
    ];
    const { callMs } = this.settings;
    return call.isBound
      ? this.store.call(enqueuePlain, args, callMs, add.deadline)
      : this.store.call(enqueuePlain, args, Math.min(call.withinMs, callMs));
  }

  private argsOf(queue: string): QueueArgs {
    const keys = this.store.keysOf(queue);
    const { maxEvents } = this.settings.limitsOf(queue);
    const args = { keys, maxEvents, fixed: enqueuePlain.fix(keys.fixed) };
    this.queues.set(queue, args);
    return args;
  }

  private async byFullScript(add: Add): Promise<EnqueueAnswer> {
    const { queue, call } = add;
    const { keys, maxEvents } = this.queues.get(queue) ?? this.argsOf(queue);
    const lane = keys.lane(call.lane);
    const some = {
      seq: call.seq,
      rememberMs: call.rememberMs,
      jobs: call.jobs.length,
      maxEvents,
      groups: call.jobs.some(({ group }) => group !== undefined) ? 1 : 0,
      workers: '',
      maxWaiting: call.maxWaiting?.limit ?? 0,
      onFull: call.maxWaiting?.onFull ?? '',
    };
    const lists = encodeJobs(call.jobs, maxEvents > 0, this.store.now());
    let args: Arg[] = enqueue.encodeBehind(enqueue.fix(keys.fixed), [lane], some, lists);
    for (;;) {
      const answer = await this.sendFull(add, args);
      if ('kind' in answer) return answer;
      const active = answer.map((worker) => keys.active(worker));
      args = enqueue.encode({ ...keys.fixed, lane }, { ...some, workers: answer.join('\n') }, lists, active);
    }
  }

  private async sendFull(add: Add, args: Arg[]): Promise<ReturnType<typeof enqueue.reply>> {
    const { queue, call, deadline } = add;
    const { replication } = call;
    if (!replication) return this.store.call(enqueue, args, ...this.timeOf(add));
    const { raw, replicas } = await this.replicators.of(queue).run({
      verb: enqueue.name,
      text: enqueue.text,
      args,
      replication,
      withinMs: msUntil(deadline),
    });
    const answer = enqueue.reply(raw);
    return 'kind' in answer && answer.kind === 'stored' ? { ...answer, replicas } : answer;
  }

  /** How long the connection may be silent, and when the call ends in any case. */
  private timeOf({ call, deadline }: Add): [silentMs: number, until: number] {
    const { callMs } = this.settings;
    return call.isBound ? [callMs, deadline] : [Math.min(msUntil(deadline), callMs), Infinity];
  }
}

/** At least 1: a time of 0 would mean that the call is never repeated. */
function ttlOf({ rememberMs }: EnqueueCall): number {
  return Math.max(rememberMs, 1);
}

/** @throws the error of a command of the transaction that should have stored the jobs. */
function areStored([begun, ...written]: unknown[]): boolean {
  if (begun !== 1) return false;
  const failed = written.find((answer) => answer instanceof Error);
  if (failed) throw new RedisRefusedError('add', 'ERR', failed.message, { cause: failed }, 'unknown');
  return true;
}

/** Redis has not run a transaction that it refused. The full script then reports the reason more clearly. */
function leftToOthers(error: unknown): false {
  if (error instanceof RedisRefusedError) return false;
  throw error;
}

/**
 * The lists of one enqueue call: jobs by the list they go to, and their events.
 *
 * @param now to compute the delay in the event of a job with a due time.
 */
function encodeJobs(
  jobs: readonly EnqueueJob[],
  withEvents: boolean,
  now: number,
): Record<
  | 'plain'
  | 'head'
  | 'ranked'
  | 'later'
  | 'grouped'
  | 'times'
  | 'priorities'
  | 'unique'
  | 'holds'
  | 'eventFields',
  Value[]
> {
  const lists = {
    plain: [] as Value[],
    head: [] as Value[],
    ranked: [] as Value[],
    later: [] as Value[],
    grouped: [] as Value[],
    times: [] as Value[],
    priorities: [] as Value[],
    unique: [] as Value[],
    holds: [] as Value[],
    eventFields: [] as Value[],
  };
  for (const job of jobs) {
    if (job.unique) {
      const { digest, forMs, states, on, delayMs, longestMs, most = 0, mostBytes = 0 } = job.unique;
      lists.unique.push(job.id, digest, forMs, states.join(' '), on, delayMs, longestMs, most, mostBytes);
    }
    if (job.idHeldBy) lists.holds.push(job.id, job.idHeldBy.join(' '));
    if (isLater(job)) {
      lists.later.push(job.id, job.body);
      lists.times.push(job.dueAt ?? `+${job.delayMs ?? 0}`);
      if (job.priority) lists.priorities.push(job.id, job.priority);
    } else if (job.group !== undefined) {
      lists.grouped.push(job.id, job.body, `g:${job.group}`, job.priority ?? 0);
    } else if (job.priority) {
      lists.ranked.push(job.id, job.body, job.priority);
    } else if (job.lifo) {
      lists.head.push(job.id, job.body);
    } else {
      lists.plain.push(job.id, job.body);
    }
  }
  if (withEvents) say(jobs, lists.eventFields, now);
  return lists;
}

/** Ids and bodies of one job, or of several with `END` after each. Names: one per line, or a single one that all jobs share. */
interface PlainJobs {
  readonly ids: string;
  readonly bodies: string;
  readonly names: string;
}

/**
 * Encodes plain jobs as texts. Null if a job has a priority, a group, `lifo` or a due time. Also null if one of several jobs may
 * exist already, because all would be sent a second time and later jobs would overtake them. Also null if more than one hash
 * keeps their bodies, or if the bodies are large, because Redis would copy them once more.
 */
function encodePlain(jobs: readonly EnqueueJob[]): PlainJobs | null {
  if (jobs.length === 1) {
    const job = jobs[0]!;
    return isPlain(job) ? { ids: job.id, bodies: job.body, names: job.name } : null;
  }
  const ids: string[] = [];
  const bodies: string[] = [];
  const names: string[] = [];
  let chars = 0;
  for (const job of jobs) {
    if (!isMadeHere(job)) return null;
    ids.push(job.id);
    bodies.push(job.body);
    names.push(job.name);
    chars += job.body.length;
  }
  if (chars > MAX_JOINED_CHARS * jobs.length) return null;
  const joined = ids.join(END);
  if (!haveOneLetter(ids, joined)) return null;
  return { ids: joined + END, bodies: bodies.join(END) + END, names: fold(names) as string };
}

/** Whether Lua would take longer for these bodies than a transaction, which needs four more commands. */
function isMuch(jobs: readonly EnqueueJob[]): boolean {
  if (jobs.length >= MUCH_JOBS) return true;
  let chars = 0;
  for (const { body } of jobs) chars += body.length;
  return chars >= MUCH_CHARS;
}

/** Whether the job goes to the end of the line and has a generated id, which no other job has. */
function isMadeHere(job: EnqueueJob): boolean {
  return !job.hasOwnId && isPlain(job);
}

/**
 * Whether one hash keeps the bodies of all these jobs, whose ids were generated here. The last letters are compared in one joined
 * text: each id is still a rope of pieces, and V8 would have to flatten every one.
 */
function haveOneLetter(ids: readonly string[], joined: string): boolean {
  const first = ids[0]!;
  const letter = letterOf(first);
  if (letter === '') return ids.every((id) => letterOf(id) === '');
  const step = first.length + 1;
  if (joined.length !== ids.length * step - 1) return false;
  const code = letter.charCodeAt(0);
  for (let at = first.length - 1; at < joined.length; at += step)
    if (joined.charCodeAt(at) !== code) return false;
  return true;
}

/** Ids as a list and as lines, ids each with its body, and names as in `PlainJobs`. */
interface MuchJobs {
  readonly ids: readonly string[];
  readonly lines: string;
  readonly fields: readonly string[];
  readonly names: string;
}

/** Null if more than one hash keeps the bodies. */
function encodeMuch(jobs: readonly EnqueueJob[]): MuchJobs | null {
  const ids: string[] = [];
  const fields: string[] = [];
  const names: string[] = [];
  for (const { id, body, name } of jobs) {
    ids.push(id);
    fields.push(id, body);
    names.push(name);
  }
  const lines = ids.join('\n');
  return haveOneLetter(ids, lines) ? { ids, lines, fields, names: fold(names) as string } : null;
}

/** Whether the job has neither a special place (priority, group, `lifo`) nor a due time. */
function isPlain(job: EnqueueJob): boolean {
  return !job.priority && job.group === undefined && !isLater(job) && !job.lifo && !job.unique;
}

function say(jobs: readonly EnqueueJob[], fields: Value[], now: number): void {
  const added = { ids: [] as string[], names: [] as string[] };
  const delayed = { ids: [] as string[], names: [] as string[], delays: [] as number[] };
  for (const job of jobs) {
    const group = isLater(job) ? delayed : added;
    group.ids.push(job.id);
    group.names.push(job.name);
    if (group === delayed) delayed.delays.push(job.delayMs ?? Math.max(0, Math.ceil(job.dueAt! - now)));
  }
  writeGroup(fields, 'added', added.ids, [['name', added.names]]);
  writeGroup(fields, 'delayed', delayed.ids, [
    ['name', delayed.names],
    ['delay', delayed.delays],
  ]);
}
