import type { EndedState, JobState } from '../job/job-state.js';
import type { FailureRecord, SettledRun } from '../job/outcome.js';
import type { ResolvedMaxWaiting } from '../options/bounds.js';
import type { Placement, Replication } from '../options/job-options.js';
import type { ActionVerbs } from './actions.js';
import type { BulkActVerbs } from './bulk-act-verbs.js';
import type { AdminVerbs } from './admin-verbs.js';
import type { DeclarationVerbs } from './declaration-verbs.js';
import type { UpkeepVerbs } from './upkeep-verbs.js';
import type { ProcessOrder, ProcessRecord, ProcessVerbs } from './process-verbs.js';
import type { LimitVerbs } from './limit-verbs.js';
import type { ScheduleVerbs } from './schedule-verbs.js';
import type { TaskVerbs } from './task-verbs.js';
import type { QueueRef } from './queue-ref.js';

/**
 * The interface of the store. Each verb is one atomic step and one attempt: it resolves with an answer, or rejects with
 * `RedisUnavailableError` (`applied` says whether it may have had its effect) or `RedisRefusedError` (nothing was changed).
 * Repeating a call with the same numbers is safe. All decisions use the clock of the store.
 */
export interface QueueEngine {
  /**
   * Connects and checks the server; resolves to whether it has answered. Rejects with `UnsupportedRedisError` if it is too old,
   * and with `QueueFormatError` if a newer version wrote a queue.
   */
  open(): Promise<boolean>;
  /**
   * Checks the format of a queue that this process did not know when it connected, as `open` does for those it knew. Rejects with
   * `QueueFormatError` if a newer version wrote it.
   */
  checkQueue(queue: QueueRef): Promise<void>;
  /** Closes every connection. May be called more than once, and before `open`. */
  close(): Promise<void>;
  /** Calls the listener when a connection goes up or down. Returns a function that removes the listener. */
  onLink(listener: (event: LinkEvent) => void): () => void;
  /**
   * Calls the listener with each warning about the server, once per code, whenever it is found: at startup, after a failover, or
   * when Redis is reached later. Returns a function that removes the listener.
   */
  onWarning(listener: (warning: ServerWarning) => void): () => void;
  /** An estimate of the store's clock, in ms since 1970. Use it for texts and ids, never for decisions. */
  now(): number;

  /**
   * Adds jobs, all or none. If a waiting, delayed or running job has the id, it is not changed, and the answer lists it. A job
   * that has ended is replaced by the new job, unless `idHeldBy` names its state.
   */
  enqueue(queue: QueueRef, call: EnqueueCall): Promise<EnqueueAnswer>;
  /** Set if somebody counts the added jobs. */
  readonly adds?: AddObserver;
  /** Settles a batch of runs that the worker still holds, promotes due jobs, and claims up to `want` jobs. */
  exchange(queue: QueueRef, call: ExchangeCall): Promise<ExchangeAnswer>;
  /** Renews the lease of a worker and reports what the store knows about it. */
  beat(queue: QueueRef, worker: string, leaseMs: number): Promise<BeatAnswer>;
  /**
   * Renews leases from a thread, so that a handler that blocks the event loop does not lose them. Null if the connection cannot
   * be passed to a thread (a function, or options with functions): then a timer calls `beat`.
   */
  openHeartbeat(plan: HeartbeatPlan): Heartbeat | null;
  /** Workers whose lease ends within `withinMs` or has ended, with the ms until its end (negative: ended). */
  overdue(queue: QueueRef, withinMs: number): Promise<readonly { worker: string; endsInMs: number }[]>;
  /** Puts the jobs of a worker whose lease has ended back into the line. */
  recover(queue: QueueRef, call: RecoverCall): Promise<RecoverAnswer>;
  /** Compares the jobs that the worker holds in the store with the jobs that it knows, and returns the differences. */
  adopt(queue: QueueRef, worker: string, known: readonly string[]): Promise<AdoptAnswer>;
  /**
   * Gives held jobs back to the head of the line. Cancelled jobs end. With `leave` the store removes the worker if it holds no jobs.
   */
  release(queue: QueueRef, call: ReleaseCall): Promise<{ lost: readonly string[] }>;
  /** Moves due delayed jobs to the line, at most `limit`. */
  promote(queue: QueueRef, limit: number): Promise<{ promoted: number; dueInMs: number | null }>;
  /** Stores progress, log lines or new data of a running job, if the worker still holds it. Resolves to false if it does not. */
  note(queue: QueueRef, call: NoteCall): Promise<boolean>;

  /** Looking up and managing jobs and queues. */
  readonly admin: AdminVerbs;
  /** Rules that add jobs at times. */
  readonly schedules: ScheduleVerbs;
  /** Dead letters, cleaning, retention. */
  readonly upkeep: UpkeepVerbs;
  /** Which schedules live processes declare in their code. */
  readonly declarations: DeclarationVerbs;
  /** Worker processes and what they run. */
  readonly processes: ProcessVerbs;
  /** Limits of queues, names and groups. */
  readonly limits: LimitVerbs;
  /** Queues of other programs. */
  readonly tasks: TaskVerbs;
  /** The record of what people did. */
  readonly actions: ActionVerbs;
  /** The records of acts on many jobs. */
  readonly bulkActs: BulkActVerbs;

  /** Resolves to the queue whose doorbell rang. Null after `interruptBell`, or when the time is over. */
  awaitBell(queues: readonly QueueRef[], maxMs: number): Promise<string | null>;
  /**
   * Like `awaitBell` for one queue, followed by a claim that Redis executes as soon as the wait ends. So a job reaches an idle
   * worker without another round trip. `call` is the next exchange of the worker. Null if this is not possible now; an engine
   * without this method never does it.
   */
  claimAtBell?(queue: QueueRef, call: ExchangeCall, maxMs: number): Promise<RungClaim> | null;
  /** Ends a running `awaitBell` with null. Also ends a running `claimAtBell`. */
  interruptBell(): void;
  /** Wakes one worker of the queue. */
  ring(queue: QueueRef): Promise<void>;
  /** Which queues have work for sleeping workers. Queues without work are not in the answer. */
  look(sleepers: readonly { queue: QueueRef; worker: string }[]): Promise<readonly QueueLook[]>;

  /** The number of the last event of a queue. */
  lastEvent(queue: QueueRef): Promise<number>;
  /** Events after the given numbers, waiting at most `blockMs` for the first. */
  readEvents(after: ReadonlyMap<QueueRef, number>, blockMs: number): Promise<readonly QueueEventBatch[]>;
  /** Ends a running `readEvents` early, so that another queue can be read too. */
  interruptEvents(): void;
  /** Opens and closes the connection that reads events. It exists only while there are subscribers. */
  openEvents(): Promise<void>;
  closeEvents(): Promise<void>;
}

/** A setting of the server that may lose jobs, make adds fail or delay jobs. */
export interface ServerWarning {
  /**
   * `evicts-keys`: its maxmemory-policy is not noeviction. `no-append-only-file`: a restart loses jobs. `too-few-replicas`: fewer
   * than the `durability` of a queue asks for. `read-only-replica`: the server is not a primary. `missing-right`: the ACL user may not
   * run a command, and no call fails because of it.
   */
  readonly code:
    'evicts-keys' | 'no-append-only-file' | 'too-few-replicas' | 'read-only-replica' | 'missing-right';
  /** The setting, its consequence, and what to do. */
  readonly message: string;
}

/** A connection went up or down, or had an error. */
export interface LinkEvent {
  readonly role: 'command' | 'blocking' | 'events' | 'heartbeat' | 'replicated';
  readonly state: 'up' | 'down';
  readonly error?: Error;
  /** Key of the configuration, if there are several. `''` for `forRoot()` without a key. */
  readonly config?: string;
}

export interface EnqueueJob extends Readonly<Placement> {
  readonly id: string;
  /** The body that `job-record.ts` wrote. The store reads only its first lines. */
  readonly body: string;
  readonly name: string;
  /** Whether the user chose the id, so a job with it may exist already. */
  readonly hasOwnId?: boolean;
  /** States in which a job that has ended keeps the id. @default none */
  readonly idHeldBy?: readonly EndedState[];
  /** A key that only one job can have at a time. Such a job has a generated id. The options in its body contain the digest. */
  readonly unique?: KeyClaim;
}

/** The `unique` options of a job, in the form of the engine. */
export interface KeyClaim {
  /** Digest of the key and its scope. */
  readonly digest: string;
  /** How long the key counts in any case, in ms. 0: as long as its job is in one of `states`. */
  readonly forMs: number;
  readonly states: readonly JobState[];
  /**
   * How to treat the new job if another job has the key. `skip`: add nothing. `replace`: give a waiting or delayed job the new
   * data. `keepLast`: do that too, or let the new job wait for the end of an active one. `debounce`: replace a delayed job and
   * delay it again. `aggregate`: add the data to the list of a delayed job; `forMs` is the delay of a new one. `again`: the job
   * has ended and is to run again; add nothing if another job that has not ended has the key.
   */
  readonly on: 'again' | 'skip' | 'replace' | 'keepLast' | 'debounce' | 'aggregate';
  /** For `debounce` and `aggregate`: the delay, and the longest wait from the first add (0: no limit). */
  readonly delayMs: number;
  readonly longestMs: number;
  /** Of an aggregate: how many items a job may have, and how many bytes they may take. */
  readonly most?: number;
  readonly mostBytes?: number;
}

/** Whether the job is delayed at first. */
export function isLater(job: EnqueueJob): boolean {
  return Boolean(job.delayMs) || job.dueAt !== undefined;
}

export interface EnqueueCall {
  /** Lane of the producer. Calls of one lane are sent one after another with increasing numbers. */
  readonly lane: string;
  readonly seq: number;
  /** Whether this call may have been sent before. */
  readonly isRepeated?: boolean;
  /** How long the store recognises a repetition of this call. */
  readonly rememberMs: number;
  /** How long this attempt waits for its answer. */
  readonly withinMs: number;
  /** Whether `withinMs` is never exceeded. Otherwise a call lasts as long as its bytes move. @default false */
  readonly isBound?: boolean;
  /** How many replicas must confirm, and how long the call waits for them. Null: none. */
  readonly replication?: Replication | null;
  /**
   * How many jobs may wait. If there would be more, the whole call is refused, or the oldest jobs are removed.
   *
   * @default no limit
   */
  readonly maxWaiting?: Pick<ResolvedMaxWaiting, 'limit' | 'onFull'> | undefined;
  /** At most 1,000, without repeated ids. */
  readonly jobs: readonly EnqueueJob[];
}

/** Called once when a call that adds jobs has ended, however often it was sent. */
interface AddObserver {
  /** @param duplicates those of the jobs that were not stored. @param removed how many other jobs were removed to make room. */
  stored(
    queue: string,
    jobs: readonly EnqueueJob[],
    duplicates: readonly Duplicate[],
    removed: number | undefined,
  ): void;
  failed(queue: string, jobs: readonly EnqueueJob[]): void;
  /** The queue or a group is full. `full`: the call rejects. `dropped`: it resolves without having added the jobs. */
  refused(queue: string, jobs: readonly EnqueueJob[], why: 'full' | 'dropped'): void;
}

/** A job that was not added because another one holds its id or its key. */
export interface Duplicate {
  readonly id: string;
  /** The state of the other job. Absent if that job is gone and its key still counts. */
  readonly state?: JobState;
  /** The job that holds the key. Absent if another job holds the id. */
  readonly holder?: string;
  /** The other job got the new data. */
  readonly replaced?: true;
  /** The other job collects data. This is its number of items now. */
  readonly size?: number;
  /** There is no other job: the queue is full, no other job could be removed, and so the new one was dropped. */
  readonly dropped?: true;
  /** No duplicate: the new job was added, and waits as a delayed one for the end of the job that has its key. */
  readonly parked?: true;
}

/** The ids of the jobs that were not added. */
export function idsNotAdded(duplicates: readonly Duplicate[]): ReadonlySet<string> {
  return new Set(duplicates.filter(({ parked }) => !parked).map(({ id }) => id));
}

export type EnqueueAnswer =
  | {
      readonly kind: 'stored';
      readonly duplicates: readonly Duplicate[];
      /** How many other jobs were removed to make room. Absent if there were none. */
      readonly removed?: number;
      /** How many replicas confirmed, if `replication` asks for any. */
      readonly replicas?: number;
    }
  /** A call with a higher number was made since. This one did nothing. */
  | { readonly kind: 'stale' }
  /** More jobs would wait than `maxWaiting` allows. Nothing was added. */
  | {
      readonly kind: 'queue-full';
      readonly waiting: number;
      /** Ids of jobs of the call that need no room, because they are duplicates. */
      readonly needNoRoom: ReadonlySet<string>;
    }
  /** A group may not have that many waiting jobs. Nothing was added. */
  | {
      readonly kind: 'group-full';
      readonly group: string;
      readonly size: number;
      readonly maxSize: number;
      /** Ids of jobs with a group that need no room, because they are duplicates. */
      readonly needNoRoom: ReadonlySet<string>;
    };

export interface ExchangeCall {
  readonly worker: string;
  /** 1 for the first exchange of a worker, then increasing by one. A repetition has the same number. */
  readonly seq: number;
  /**
   * Whether the call may be in flight at the same time as another one of this worker. Pipelined calls are numbered separately.
   * Only allowed after the first exchange of the worker was answered, because the store does not know it before.
   *
   * @default false
   */
  readonly pipelined?: boolean;
  readonly leaseMs: number;
  /**
   * How many jobs to claim. Below 0: none, and shared limits let no other worker of the queue start one. So none is woken for jobs
   * that wait.
   */
  readonly want: number;
  /** Maximum bytes of bodies in the reply. A single job is returned even if it is larger. @default no limit */
  readonly maxBytes?: number;
  /** Whether a suspect may be among the claimed jobs. A worker holds at most one at a time. */
  readonly maySuspect: boolean;
  /** How many jobs a group with weight 1 may give at its turn, even if many groups wait. @default 1 */
  readonly perTurn?: number | undefined;
  readonly settled: readonly SettledRun[];
}

/** Whether another exchange can claim more: yes; no jobs wait; the queue is paused; or limits let none start for some ms. */
export type Supply = 'more' | 'empty' | 'paused' | { readonly limitedForMs: number };

export type ExchangeAnswer =
  | {
      readonly kind: 'exchanged';
      /** Ids of settled jobs that this worker no longer held. Nothing was done for them. */
      readonly lost: readonly string[];
      /** Ids of settled jobs that were cancelled: they did not complete, so they ended as cancelled. Absent if there are none. */
      readonly cancelled?: readonly string[];
      readonly claimed: readonly ClaimedJob[];
      /** When limits counted the claimed jobs, in ms since 1970 by the clock of the store. A repetition has a later time. */
      readonly claimedAt: number;
      /** Whether fewer jobs were claimed than wanted because of `maxBytes`. Always false in a repetition. */
      readonly isCut: boolean;
      readonly supply: Supply;
      /** Set if the queue has limits or groups. */
      readonly isLimited?: true;
      /** Whether limits keep waiting jobs from starting. Absent if the call did not find out. */
      readonly isHeldBack?: boolean;
      /**
       * Set if claimed jobs must start at once, so none is claimed ahead: a rate counts them when they are claimed; a hold, a
       * circuit breaker or a paused group may forbid their start; a concurrency of the queue or a name counts them as running.
       */
      readonly startsAtOnce?: true;
      /** Ms until the next delayed job is due. */
      readonly dueInMs: number | null;
      /** Ms until the first lease of another worker ends. */
      readonly leaseInMs: number | null;
      /** Ms until the first occurrence of a schedule. */
      readonly scheduleInMs: number | null;
      /** How many jobs this worker holds now, as the store counts them. */
      readonly held: number;
    }
  | { readonly kind: 'stale' }
  /** The lease of this worker ended and its jobs were taken back. It must take a new name. */
  | { readonly kind: 'unknown-worker' };

/** The answer to a claim without settlements. It contains nothing else about the queue. */
export interface ClaimAnswer {
  readonly kind: 'claimed';
  readonly claimed: readonly ClaimedJob[];
  /** Like `isCut` of an exchange. */
  readonly isCut: boolean;
  /** How many jobs this worker holds now. Null if something was claimed: then it is not counted. */
  readonly held: number | null;
  /** How old the answer is, in ms by the clock of the store. Absent if the answer is new. */
  readonly ageMs?: number;
}

/** The answer of `claimAtBell`. */
export interface RungClaim {
  /** Whether the doorbell ended the wait. */
  readonly rung: boolean;
  /** The error if the store refused to wait for the doorbell. The claim was made in any case. */
  readonly refusal?: Error | undefined;
  /** Whether the doorbell may have rung for a due time that is earlier than those that workers know. */
  readonly isOfTime: boolean;
  /** Null: nothing was done, because a claim is not enough. Make the exchange. */
  readonly answer: ClaimAnswer | null;
}

/** One queue in the answer of `look`. */
export interface QueueLook {
  readonly queue: QueueRef;
  /** Whether to exchange now: jobs wait and the queue is not paused, or the check failed. */
  readonly work: boolean;
  /** Ms until the next delayed job is due. */
  readonly dueInMs: number | null;
  /** Ms until the first lease of another worker ends. */
  readonly leaseInMs: number | null;
  /** Ms until the next occurrence of a schedule. */
  readonly scheduleInMs: number | null;
}

export interface ClaimedJob {
  readonly id: string;
  readonly body: string;
  /** Attempts that failed before. */
  readonly failed: number;
  /** How many workers the job has lost. */
  readonly stalls: number;
  /** Set if it has run before without a failed attempt, or was retried by a call. Then it does not expire. */
  readonly started?: true;
  /** Set if a stored counter of the job cannot be read. It counts as 0 until `repair` resets it. */
  readonly unreadable?: true;
}

export type BeatAnswer =
  | {
      readonly kind: 'alive';
      readonly held: number;
      /** How many exchanges the worker has made. */
      readonly exchanges: number;
      /** Reasons by id, for jobs of this worker that were cancelled. At most 1,000. */
      readonly cancels: ReadonlyMap<string, string>;
    }
  | { readonly kind: 'unknown-worker' };

/** When a worker counts as lost. */
export interface LeaseTimes {
  readonly leaseMs: number;
  /** How long the event loop may be blocked before the lease is no longer renewed. */
  readonly maxBlockMs: number;
}

/** Whether a lease that was renewed `ms` ago must be renewed at this tick. Each lease is renewed four times in its duration. */
export function isBeatDue(ms: number, leaseMs: number, tickMs: number): boolean {
  return ms >= leaseMs / 4 - tickMs / 2;
}

/** The start message of the heartbeat thread. The times are those of the record of the process. */
export interface HeartbeatPlan extends LeaseTimes {
  /** A quarter of the shortest lease. */
  readonly beatMs: number;
  /** Called when the thread renews leases. Until then a timer must call `beat`. */
  readonly onReady: () => void;
  /** Called for every answered renewal. */
  readonly onBeat: (queue: QueueRef, worker: string, answer: BeatAnswer) => void;
  /** Called with the orders to this process. They come again until its record names them as obeyed. */
  readonly onOrders: (orders: readonly ProcessOrder[]) => void;
  /** Called when the store has lost its data. */
  readonly onDataLost: () => void;
  /** Called when the thread died. A timer must call `beat` instead. */
  readonly onFailure: (error: Error) => void;
}

/** The thread that renews the leases of workers with jobs, and the record of the process. */
export interface Heartbeat {
  /** From now on renews the lease of this worker of the queue while it `holds` jobs. */
  follow(queue: QueueRef, worker: string, lease: LeaseTimes): void;
  /**
   * Sets whether the worker of the queue holds jobs. It is written to shared memory, so it costs nothing and needs no event loop.
   */
  holds(queue: QueueRef, any: boolean): void;
  leave(queue: QueueRef): void;
  /** Registers this process with this record, and renews it. */
  show(record: ProcessRecord): void;
  /** Resolves when nothing is renewed any more. */
  close(): Promise<void>;
}

export interface RecoverCall {
  readonly worker: string;
  readonly beatMs: number;
  readonly leaseMs: number;
  readonly maxStalls: number;
}

export type RecoverAnswer =
  | {
      readonly kind: 'recovered';
      readonly waiting: readonly string[];
      readonly suspects: readonly string[];
      readonly dead: readonly string[];
      /** Jobs that were cancelled while they ran. They are gone. */
      readonly cancelled: readonly string[];
      readonly more: boolean;
    }
  /** The lease has ended, but the server may have been unreachable or its clock may have jumped. Ask again after this time. */
  | { readonly kind: 'doubted'; readonly againInMs: number }
  | { readonly kind: 'alive' };

export interface AdoptAnswer {
  readonly unknown: readonly string[];
  readonly lost: readonly string[];
  /** Jobs whose ids cannot be read. They became dead as `corrupt`, under these ids. */
  readonly buried: readonly string[];
}

export interface ReleaseCall {
  readonly worker: string;
  readonly ids: readonly string[];
  readonly leave: boolean;
}

export interface NoteCall {
  readonly worker: string;
  readonly id: string;
  readonly name: string;
  readonly attempt: number;
  /** JSON. */
  readonly progress?: string;
  readonly log?: string;
  /** JSON of new data. Such a call has no other note. */
  readonly data?: string;
}

/** One entry of the event stream. */
export interface QueueEventBatch {
  readonly queue: QueueRef;
  /** Number of its first event: one more than the `last` of the previous entry. */
  readonly first: number;
  /** Number of the last event in the batch: the next read starts after it. */
  readonly last: number;
  readonly at: number;
  readonly events: readonly RawEvent[];
}

export interface RawEvent {
  /** Number of the event in its queue. It increases, usually by one. */
  readonly number: number;
  readonly type: EventType;
  /** Empty for events of the queue itself. */
  readonly id: string;
  readonly name: string;
  readonly attempt: number;
  readonly durationUs: number;
  readonly delayMs: number;
  /** The reason of a dead, removed or cancelled job; why a `completed` event has no result; the shared limit of a breaker. */
  readonly reason: string;
  readonly error: FailureRecord | null;
  /** JSON: the progress, the result of a `completed` event, or the payload of an event of the application's own. */
  readonly progress: string | null;
}

/** Every move of a job, in the past tense, and `published` for events of the application's own. */
export const EVENT_TYPES = [
  'added',
  'delayed',
  'active',
  'progress',
  'completed',
  'retrying',
  'dead',
  'stalled',
  'released',
  'removed',
  'cancelled',
  'updated',
  'paused',
  'resumed',
  'breakerOpened',
  'breakerClosed',
  'published',
] as const;

/** Type of an event: what happened to a job or to a queue. */
export type EventType = (typeof EVENT_TYPES)[number];

/** The options of a queue that a store needs: its leases, and how much it keeps. */
export interface QueueLimits {
  /** How long a worker may be silent. */
  readonly leaseMs: number;
  /** Log lines kept of each job. */
  readonly logsMax: number;
  /** Events kept for readers that resume. 0: no events are written. */
  readonly maxEvents: number;
  /** Null: events of any age are kept. */
  readonly eventsAgeMs: number | null;
  /** About how many bytes events with large values may take. */
  readonly eventsMaxBytes: number;
  /** About how many bytes large progress values may take. */
  readonly progressMaxBytes: number;
  readonly deadMax: number;
  /** About how many bytes dead jobs may take. */
  readonly deadMaxBytes: number;
  readonly deadAgeMs: number;
  /** How many ms cancelled jobs are kept if they have no retention of their own. @default 0 */
  readonly cancelledMs?: number;
  /** Completed and cancelled jobs kept, however long their retention. */
  readonly completedMax: number;
}
