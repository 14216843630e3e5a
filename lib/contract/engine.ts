import type { EndedState, JobState } from '../job/job-state.js';
import type { FailureRecord, SettledRun } from '../job/outcome.js';
import type { Replication } from '../options/job-options.js';
import type { AdminVerbs } from './admin-verbs.js';
import type { DeclarationVerbs } from './declaration-verbs.js';
import type { UpkeepVerbs } from './upkeep-verbs.js';
import type { ProcessRecord, ProcessVerbs } from './process-verbs.js';
import type { LimitVerbs } from './limit-verbs.js';
import type { ScheduleVerbs } from './schedule-verbs.js';
import type { TaskVerbs } from './task-verbs.js';
import type { QueueRef } from './queue-ref.js';

/**
 * The interface of the store. Each verb is one atomic step and one attempt: it resolves with an answer, or rejects with
 * `RedisUnavailableError` (`applied` says whether it may have had its effect) or `RedisRefusedError` (nothing was changed). Repeating a
 * call with the same numbers is safe. All decisions use the clock of the store.
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
  /** Closes every connection. Safe twice, and before `open`. */
  close(): Promise<void>;
  /** Calls the listener when a connection goes up or down; returns a function that removes the listener. */
  onLink(listener: (event: LinkEvent) => void): () => void;
  /**
   * Calls the listener with each warning about the server, once per code, whenever it is found: at startup, after a failover, or when Redis
   * comes later. Returns a function that removes the listener.
   */
  onWarning(listener: (warning: ServerWarning) => void): () => void;
  /** The clock of the store in ms since 1970, as far as it is known here; for texts and ids, never for decisions. */
  now(): number;

  /**
   * Adds jobs, all or none. A job that waits, is delayed or runs holds its id: it is not changed, and the answer lists it. One that has
   * ended is replaced by the new job, unless `idHeldBy` names its state.
   */
  enqueue(queue: QueueRef, call: EnqueueCall): Promise<EnqueueAnswer>;
  /** Settles a batch of runs that the worker still holds, promotes due jobs, and claims up to `want` jobs. */
  exchange(queue: QueueRef, call: ExchangeCall): Promise<ExchangeAnswer>;
  /** Renews the lease of a worker and tells what the server thinks it holds. */
  beat(queue: QueueRef, worker: string, leaseMs: number): Promise<BeatAnswer>;
  /**
   * Renews leases from a thread, so that a handler that blocks the event loop does not lose them. Null if the connection cannot be passed to
   * a thread (a function, or options with functions): then a timer calls `beat`.
   */
  openHeartbeat(plan: HeartbeatPlan): Heartbeat | null;
  /** Workers whose lease ends within `withinMs` or has ended, with the ms until its end (negative: ended). */
  overdue(queue: QueueRef, withinMs: number): Promise<readonly { worker: string; endsInMs: number }[]>;
  /** Puts the jobs of a worker whose lease has ended back into the line. */
  recover(queue: QueueRef, call: RecoverCall): Promise<RecoverAnswer>;
  /** Compares the jobs that the store and the worker believe the worker holds, and returns the differences. */
  adopt(queue: QueueRef, worker: string, known: readonly string[]): Promise<AdoptAnswer>;
  /** Gives held jobs back to the head of the line; cancelled ones end. With `leave` the store forgets the worker when it holds nothing. */
  release(queue: QueueRef, call: ReleaseCall): Promise<{ lost: readonly string[] }>;
  /** Moves due delayed jobs to the line, at most `limit`. */
  promote(queue: QueueRef, limit: number): Promise<{ promoted: number; dueInMs: number | null }>;
  /** Progress, log lines or new data of a running job, fenced like a settlement. `false`: no longer held. */
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

  /** Resolves to the queue whose doorbell rang; null after `interruptBell`, or when the time is over. */
  awaitBell(queues: readonly QueueRef[], maxMs: number): Promise<string | null>;
  /**
   * As `awaitBell` for one queue, with a claim that Redis executes the moment the wait ends, so that a job reaches an idle worker without
   * another round trip. `call` is the next exchange of the worker. Null, or absent, if that is not possible now.
   */
  claimAtBell?(queue: QueueRef, call: ExchangeCall, maxMs: number): Promise<RungClaim> | null;
  /** Ends a running `awaitBell` with null, or a running `claimAtBell`. */
  interruptBell(): void;
  /** Wakes one worker of the queue. */
  ring(queue: QueueRef): Promise<void>;
  /** Which queues have work for sleeping workers; queues without any are not in the answer. */
  look(sleepers: readonly { queue: QueueRef; worker: string }[]): Promise<readonly QueueLook[]>;

  /** The number of the last event of a queue. */
  lastEvent(queue: QueueRef): Promise<number>;
  /** Events after the given numbers, waiting at most `blockMs` for the first. */
  readEvents(after: ReadonlyMap<QueueRef, number>, blockMs: number): Promise<readonly QueueEventBatch[]>;
  /** Ends a running `readEvents` early, so that another queue can be read too. */
  interruptEvents(): void;
  /** Opens and closes the connection that reads events; it exists only while somebody subscribes. */
  openEvents(): Promise<void>;
  closeEvents(): Promise<void>;
}

/** A setting of the server that may lose jobs or make adds fail. */
export interface ServerWarning {
  /**
   * `evicts-keys`: its maxmemory-policy is not noeviction. `no-append-only-file`: a restart forgets jobs. `too-few-replicas`:
   * fewer than the `durability` of a queue asks for. `read-only-replica`: it is no primary.
   */
  readonly code: 'evicts-keys' | 'no-append-only-file' | 'too-few-replicas' | 'read-only-replica';
  /** The setting, its consequence, and what to do. */
  readonly message: string;
}

/** A connection went up or down, or had an error. */
export interface LinkEvent {
  readonly role: 'command' | 'blocking' | 'events' | 'heartbeat' | 'replicated';
  readonly state: 'up' | 'down';
  readonly error?: Error;
  /** Key of the configuration, if there are several; `''` for `forRoot()` without a key. */
  readonly config?: string;
}

export interface EnqueueJob {
  readonly id: string;
  /** As `job-record.ts` wrote it; opaque to the store but for its first line, the name. */
  readonly body: string;
  readonly name: string;
  /** Whether the user chose the id, so a job with it may exist already. */
  readonly hasOwnId?: boolean;
  /** In which states a job that has ended holds the id too. @default none */
  readonly idHeldBy?: readonly EndedState[];
  /** Wait this long before the first run. */
  readonly delayMs?: number;
  /** Or until this moment (ms since 1970). */
  readonly dueAt?: number;
  /** 1 (first) to 2,097,151 (last); absent or 0: before all of them. */
  readonly priority?: number;
  /** To the head of the line; without a time and a priority. */
  readonly lifo?: boolean;
  /** The group whose turn it waits for. */
  readonly group?: string;
  /** A key that one job has at a time; only with a generated id. The options in the body name its digest. */
  readonly unique?: KeyClaim;
}

/** What a job asks of its key. */
export interface KeyClaim {
  /** Of the key, and of what it is unique in. */
  readonly digest: string;
  /** The key counts for so long in any case, whatever becomes of its job; 0: as long as its job is in one of `states`. */
  readonly forMs: number;
  readonly states: readonly JobState[];
  /**
   * Where another job has the key: `skip` adds nothing; `replace` gives a job that waits or is delayed the new data; `keepLast` does that too, or lets the
   * new job wait for the end of one that is active; `debounce` replaces a delayed job and delays it anew.
   */
  readonly on: 'skip' | 'replace' | 'keepLast' | 'debounce';
  /** Of a debounce: the delay, and the longest wait from the first add on (0: no limit). */
  readonly delayMs: number;
  readonly longestMs: number;
}

/** Whether it is delayed at first. */
export function isLater(job: EnqueueJob): boolean {
  return Boolean(job.delayMs) || job.dueAt !== undefined;
}

export interface EnqueueCall {
  /** Lane of the producer; calls of one lane are sent one after another with rising numbers. */
  readonly lane: string;
  readonly seq: number;
  /** Whether this call may have been sent before. */
  readonly isRepeated?: boolean;
  /** How long the store recognises a repetition of this call. */
  readonly rememberMs: number;
  /** How long this attempt waits for its answer. */
  readonly withinMs: number;
  /** Whether `withinMs` is never exceeded; else a call lasts as long as its bytes move. @default false */
  readonly isBound?: boolean;
  /** How many replicas must confirm, and how long the call waits for them. Absent or null: none. */
  readonly replication?: Replication | null;
  /** How many jobs may wait. A call that would make them more is refused as a whole, or the oldest ones are removed. @default no limit */
  readonly maxWaiting?: { readonly limit: number; readonly dropOldest: boolean } | undefined;
  /** At most 1,000, without repeated ids. */
  readonly jobs: readonly EnqueueJob[];
}

/** A job that was not added because another one holds its id or its key. */
export interface Duplicate {
  readonly id: string;
  /** Of the other one; absent if that is gone and its key still counts. */
  readonly state?: JobState;
  /** The job that holds the key; absent if another one holds the id. */
  readonly holder?: string;
  /** The other one has the new data now. */
  readonly replaced?: true;
}

export type EnqueueAnswer =
  | {
      readonly kind: 'stored';
      readonly duplicates: readonly Duplicate[];
      /** How many replicas confirmed, if `replication` asks for any. */
      readonly replicas?: number;
    }
  /** A call with a higher number has been made since; this one did nothing now. */
  | { readonly kind: 'stale' }
  /** A group may not have so many waiting jobs; nothing was added. */
  | {
      /** More would wait than `maxWaiting` says; nothing was added. */
      readonly kind: 'queue-full';
      readonly waiting: number;
    }
  | {
      readonly kind: 'group-full';
      readonly group: string;
      readonly size: number;
      readonly maxSize: number;
    };

export interface ExchangeCall {
  readonly worker: string;
  /** 1 for the first exchange of a worker, then rising by one; a repetition carries the same number. */
  readonly seq: number;
  /**
   * It may be on its way at the same time as another one of this worker, and has numbers of its own. Not before the first
   * exchange of the worker has been answered: else it is not known. @default false
   */
  readonly pipelined?: boolean;
  readonly leaseMs: number;
  readonly want: number;
  /** Bytes of bodies that the answer may hold; one job is given out whatever its size. @default no limit */
  readonly maxBytes?: number;
  /** Whether a job that has stalled twice may be among the claimed: at most one at a time for a worker. */
  readonly maySuspect: boolean;
  readonly settled: readonly SettledRun[];
}

/** Whether there are more jobs after an exchange. If not: no more wait, the queue is paused, or no more may start for some ms. */
export type Supply = 'more' | 'empty' | 'paused' | { readonly limitedForMs: number };

export type ExchangeAnswer =
  | {
      readonly kind: 'exchanged';
      /** Ids among the settled that this worker no longer held; nothing was done for them. */
      readonly lost: readonly string[];
      readonly claimed: readonly ClaimedJob[];
      /** Whether fewer were claimed than wanted because of `maxBytes`; always false in a repetition. */
      readonly isCut: boolean;
      readonly supply: Supply;
      /** The queue has limits or groups: what is claimed must start at once, so nothing is claimed ahead. Else left out. */
      readonly isLimited?: true;
      /** Until the next delayed job is due. */
      readonly dueInMs: number | null;
      /** Until the first lease of another worker ends. */
      readonly leaseInMs: number | null;
      /** Until the first occurrence of a schedule. */
      readonly scheduleInMs: number | null;
      /** Jobs under this worker from now on, as the store counts them. */
      readonly held: number;
    }
  | { readonly kind: 'stale' }
  /** The lease of this worker ended and its jobs were taken back: it must take a new identity. */
  | { readonly kind: 'unknown-worker' };

/** The answer of a claim without settlements; it says nothing else about the queue. */
export interface ClaimAnswer {
  readonly kind: 'claimed';
  readonly claimed: readonly ClaimedJob[];
  /** As of an exchange. */
  readonly isCut: boolean;
  /** How many jobs this worker holds now; null, not counted, if something was claimed. */
  readonly held: number | null;
  /** How long ago it was made, in ms by the clock of the store; left out: just now. */
  readonly ageMs?: number;
}

/** The answer of `claimAtBell`. */
export interface RungClaim {
  /** Whether the doorbell ended the wait. */
  readonly rung: boolean;
  /** The error if the store refused to wait for the doorbell; the claim was made nevertheless. */
  readonly refusal?: Error | undefined;
  /** Whether the doorbell may have rung for a due time that is earlier than those that workers know. */
  readonly isOfTime: boolean;
  /** Null: nothing was done, because a claim is not enough: make the exchange. */
  readonly answer: ClaimAnswer | null;
}

/** One queue in the answer of `look`. */
export interface QueueLook {
  readonly queue: QueueRef;
  /** Whether to ask for work now: jobs wait and the queue is not paused, or the look failed. */
  readonly work: boolean;
  /** Until the next delayed job is due. */
  readonly dueInMs: number | null;
  /** Until the first lease of another worker ends. */
  readonly leaseInMs: number | null;
  /** Until the next occurrence of a schedule. */
  readonly scheduleInMs: number | null;
}

export interface ClaimedJob {
  readonly id: string;
  readonly body: string;
  /** Attempts that failed before. */
  readonly failed: number;
  /** Workers that died with it. */
  readonly stalls: number;
  /** It has run before although no attempt has failed, or was retried by a person: it does not expire. Else left out. */
  readonly started?: true;
  /** A stored number of it cannot be read, and counts as 0 until `repair` resets it. Else absent. */
  readonly unreadable?: true;
}

export type BeatAnswer =
  | {
      readonly kind: 'alive';
      readonly held: number;
      /** How many it has made. */
      readonly exchanges: number;
      /** Reasons by id, of jobs that this worker holds and that were cancelled; at most 1,000. */
      readonly cancels: ReadonlyMap<string, string>;
    }
  | { readonly kind: 'unknown-worker' };

/** When a worker counts as lost. */
export interface LeaseTimes {
  readonly leaseMs: number;
  /** How long the event loop may be blocked before the lease is no longer renewed. */
  readonly maxBlockMs: number;
}

/** How long the record of a worker outlives its last call, so that late calls are recognised. */
export function workerRecordMs(leaseMs: number): number {
  return Math.max(600_000, leaseMs * 4);
}

/** Whether a lease that was renewed `ms` ago is to be renewed at this tick: each is renewed four times while it lasts. */
export function isBeatDue(ms: number, leaseMs: number, tickMs: number): boolean {
  return ms >= leaseMs / 4 - tickMs / 2;
}

/** The times of the plan are those of the record of the process. */
export interface HeartbeatPlan extends LeaseTimes {
  /** A quarter of the shortest lease. */
  readonly beatMs: number;
  /** The thread renews leases from now on; until then a timer must call `beat`. */
  readonly onReady: () => void;
  /** Called for every answered renewal. */
  readonly onBeat: (queue: QueueRef, worker: string, answer: BeatAnswer) => void;
  /** The thread died; a timer must call `beat` instead. */
  readonly onFailure: (error: Error) => void;
}

/** The thread that renews the leases of workers with jobs, and the record of the process. */
export interface Heartbeat {
  /** From now on renews the lease of this worker of the queue, while it `holds` jobs. */
  follow(queue: QueueRef, worker: string, lease: LeaseTimes): void;
  /** Whether the worker of the queue holds jobs: written to shared memory, so it costs nothing and needs no event loop. */
  holds(queue: QueueRef, any: boolean): void;
  leave(queue: QueueRef): void;
  /** Registers this process with this record, and renews it. */
  show(record: ProcessRecord): void;
  /** When it resolves, nothing is renewed any more. */
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
      /** They were cancelled while they ran, and are gone. */
      readonly cancelled: readonly string[];
      readonly more: boolean;
    }
  /** The lease has ended, but the server may have been away or its clock may have jumped: ask again after this time. */
  | { readonly kind: 'doubted'; readonly againInMs: number }
  | { readonly kind: 'alive' };

export interface AdoptAnswer {
  readonly unknown: readonly string[];
  readonly lost: readonly string[];
  /** Jobs whose ids cannot be read: they are dead as `corrupt` now, under these ids. */
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
  /** JSON of new data, alone in its call. */
  readonly data?: string;
}

/** One entry of the event stream. */
export interface QueueEventBatch {
  readonly queue: QueueRef;
  /** Number of its first event: one more than the `last` of the entry before. */
  readonly first: number;
  /** Number of the last event in the batch: the next read starts after it. */
  readonly last: number;
  readonly at: number;
  readonly events: readonly RawEvent[];
}

export interface RawEvent {
  /** Number of the event in its queue: rises, mostly by one. */
  readonly number: number;
  readonly type: EventType;
  /** Empty for events of the queue itself. */
  readonly id: string;
  readonly name: string;
  readonly attempt: number;
  readonly durationUs: number;
  readonly delayMs: number;
  /** Why: a dead reason, or why it was removed or cancelled. */
  readonly reason: string;
  readonly error: FailureRecord | null;
  /** JSON, of a progress event and of one of the application's own. */
  readonly progress: string | null;
}

/** Every move of a job, in the past tense; and `published`, the events of the application's own. */
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
  'published',
] as const;

/** Type of an event: what happened to a job or to a queue. */
export type EventType = (typeof EVENT_TYPES)[number];

/** What a store must know of the options of a queue: its leases, and how much it keeps. */
export interface QueueLimits {
  /** How long a worker may be silent. */
  readonly leaseMs: number;
  /** Log lines kept of each job. */
  readonly logsMax: number;
  /** Events kept for readers that resume; 0: none are written. */
  readonly maxEvents: number;
  /** Null: of any age. */
  readonly eventsAgeMs: number | null;
  /** About how many bytes events with large values may take. */
  readonly eventsMaxBytes: number;
  /** About how many bytes large values of progress may take. */
  readonly progressMaxBytes: number;
  readonly deadMax: number;
  /** About how many bytes dead jobs may take. */
  readonly deadMaxBytes: number;
  readonly deadAgeMs: number;
  /** Ms for which cancelled jobs are kept that do not say so themselves. @default 0 */
  readonly cancelledMs?: number;
  /** Completed and cancelled jobs kept, however long their retention. */
  readonly completedMax: number;
}
