import type { FailureRecord, SettledRun } from '../job/outcome.js';
import type { Replication } from '../options/job-options.js';
import type { AdminVerbs } from './admin-verbs.js';
import type { DeclarationVerbs } from './declaration-verbs.js';
import type { UpkeepVerbs } from './upkeep-verbs.js';
import type { ProcessRecord, ProcessVerbs } from './process-verbs.js';
import type { ScheduleVerbs } from './schedule-verbs.js';
import type { TaskVerbs } from './task-verbs.js';

/**
 * Everything the rest of the library may ask of the store, as plain verbs. Each verb is one atomic step and one attempt:
 * it resolves with an answer in words, or rejects with `RedisUnavailableError` (`applied` says whether it may have had
 * its effect) or `RedisRefusedError` (nothing was changed). Repeating a call with the same numbers is always harmless.
 * All times that decide anything are the store's own.
 */
export interface QueueEngine {
  /**
   * Connects and checks the server; answers whether it is there already. Rejects with `UnsupportedRedisError` where it is too
   * old.
   */
  open(): Promise<boolean>;
  /** Closes every connection. Safe twice, and before `open`. */
  close(): Promise<void>;
  /** Told of every change between `up` and `down`; returns the function that stops the telling. */
  onLink(listener: (event: LinkEvent) => void): () => void;
  /**
   * Told of each assumption that the server does not keep, once for each code, whenever it is found: at the start, after a
   * failover, or when Redis comes later. Returns the function that stops the telling.
   */
  onWarning(listener: (warning: ServerWarning) => void): () => void;
  /** The store's clock in ms since 1970 as far as it is known here; for texts and ids, never for decisions. */
  now(): number;

  /** Puts jobs in, all or none. Jobs whose id is already in the queue are left as they are and named in the answer. */
  enqueue(queue: string, call: EnqueueCall): Promise<EnqueueAnswer>;
  /** The heart: settles a batch (fenced), promotes what is due, claims up to `want`. */
  exchange(queue: string, call: ExchangeCall): Promise<ExchangeAnswer>;
  /** Renews the lease of a worker and tells what the server thinks it holds. */
  beat(queue: string, worker: string, leaseMs: number): Promise<BeatAnswer>;
  /**
   * Beats from a thread of its own, so that a handler that blocks the event loop is not taken for dead. Null where the
   * connection cannot be carried to a thread (a factory, or options with functions): then `beat` is called by a timer.
   */
  openHeartbeat(plan: HeartbeatPlan): Heartbeat | null;
  /** Workers whose lease is over or will be within `withinMs`, with the ms until its end (negative: over). */
  overdue(queue: string, withinMs: number): Promise<readonly { worker: string; endsInMs: number }[]>;
  /** Takes the jobs of a worker whose lease is over back to the line. */
  recover(queue: string, call: RecoverCall): Promise<RecoverAnswer>;
  /** What the server thinks this worker holds and the worker does not, and the other way round. */
  adopt(queue: string, worker: string, known: readonly string[]): Promise<AdoptAnswer>;
  /** Gives held jobs back to the head of the line; those that were cancelled end. With `leave` the worker is forgotten once it holds nothing. */
  release(queue: string, call: ReleaseCall): Promise<{ lost: readonly string[] }>;
  /** Moves due delayed jobs to the line, at most `limit`. */
  promote(queue: string, limit: number): Promise<{ promoted: number; dueInMs: number | null }>;
  /** Progress and log lines of a running job, fenced like a settlement. `false`: no longer held. */
  note(queue: string, call: NoteCall): Promise<boolean>;

  /** What people ask and do. */
  readonly admin: AdminVerbs;
  /** Rules that make jobs, and making them. */
  readonly schedules: ScheduleVerbs;
  /** Dead letters, cleaning, retention. */
  readonly upkeep: UpkeepVerbs;
  /** Which schedules the live processes have in their code. */
  readonly declarations: DeclarationVerbs;
  /** Who works, on what. */
  readonly processes: ProcessVerbs;
  /** Queues of other programs. */
  readonly tasks: TaskVerbs;

  /** Blocks until the doorbell of one of these queues rings, `interruptBell` is called, or the time is over. */
  awaitBell(queues: readonly string[], maxMs: number): Promise<string | null>;
  /**
   * As `awaitBell` for one queue, with the next exchange of a worker left at the store, of which nothing but a claim is made there
   * the moment the wait is over: so a job reaches an idle worker without its asking. Null, or absent, where that cannot be done now.
   */
  claimAtBell?(queue: string, call: ExchangeCall, maxMs: number): Promise<RungClaim> | null;
  /** Ends a running `awaitBell` with null, or a running `claimAtBell`. */
  interruptBell(): void;
  /** Wakes one worker of the queue. */
  ring(queue: string): Promise<void>;
  /** What there is for workers that sleep; a queue with nothing at all is not in the answer. */
  look(sleepers: readonly { queue: string; worker: string }[]): Promise<readonly QueueLook[]>;

  /** The number of the last event of a queue. */
  lastEvent(queue: string): Promise<number>;
  /** Events after the given numbers, waiting at most `blockMs` for the first. */
  readEvents(after: ReadonlyMap<string, number>, blockMs: number): Promise<readonly QueueEventBatch[]>;
  /** Ends a running `readEvents` with what there is: other queues are to be read too. */
  interruptEvents(): void;
  /** Opens and closes the connection that reads events; it exists only while somebody subscribes. */
  openEvents(): Promise<void>;
  closeEvents(): Promise<void>;
}

/** Something about the server under which jobs may be lost, or adds must fail. */
export interface ServerWarning {
  /**
   * `evicts-keys`: its maxmemory-policy is not noeviction. `no-append-only-file`: a restart forgets jobs. `too-few-replicas`:
   * fewer than the `durability` of a queue asks for. `read-only-replica`: it is no primary.
   */
  readonly code: 'evicts-keys' | 'no-append-only-file' | 'too-few-replicas' | 'read-only-replica';
  /** What is so, what may come of it, and what to do. */
  readonly message: string;
}

/** A connection came up, went down, or had an error worth telling. */
export interface LinkEvent {
  readonly role: 'command' | 'blocking' | 'events' | 'heartbeat' | 'replicated';
  readonly state: 'up' | 'down';
  readonly error?: Error;
  /** Key of the configuration, where there are several; `''` is the one without. */
  readonly config?: string;
}

export interface EnqueueJob {
  readonly id: string;
  /** As `job-record.ts` wrote it; opaque to the store but for its first line, the name. */
  readonly body: string;
  readonly name: string;
  /** A job of that id may be there already: it was not made for this job. */
  readonly hasOwnId?: boolean;
  /** Wait this long before the first run. */
  readonly delayMs?: number;
  /** Or until this moment (ms since 1970). */
  readonly dueAt?: number;
  /** 1 (first) to 2,097,151 (last); absent or 0: before all of them. */
  readonly priority?: number;
}

export interface EnqueueCall {
  /** Lane of the producer; calls of one lane are sent one after another with rising numbers. */
  readonly lane: string;
  readonly seq: number;
  /** Whether it may have been made before. */
  readonly isRepeated?: boolean;
  /** How long the store recognises a repetition of this call. */
  readonly rememberMs: number;
  /** How long this attempt waits for its answer. */
  readonly withinMs: number;
  /** Whether it waits no longer in any case. Else it goes on for as long as its bytes move. @default false */
  readonly isBound?: boolean;
  /** The answer waits until so many replicas confirm to have it too, at most so long. Absent or null: it waits for none. */
  readonly replication?: Replication | null;
  /** No id twice, at most 1,000. */
  readonly jobs: readonly EnqueueJob[];
}

export type EnqueueAnswer =
  | {
      readonly kind: 'stored';
      readonly duplicates: readonly string[];
      /** How many replicas confirmed to have it, where `replication` asks. */
      readonly replicas?: number;
    }
  /** A call with a higher number has been made since; this one did nothing now. */
  | { readonly kind: 'stale' };

export interface ExchangeCall {
  readonly worker: string;
  /** 1 for the first exchange of a worker, then rising by one; a repetition carries the same number. */
  readonly seq: number;
  /**
   * It may be on its way at the same time as another one of this worker, and has numbers of its own. Not before the first
   * exchange of the worker has been answered: else it is not known. @default false
   */
  readonly beside?: boolean;
  readonly leaseMs: number;
  readonly want: number;
  /** Bytes of bodies that the answer may hold; one job is given out whatever its size. @default no limit */
  readonly maxBytes?: number;
  /** Whether a job that has stalled twice may be among the claimed: at most one at a time for a worker. */
  readonly maySuspect: boolean;
  readonly settled: readonly SettledRun[];
}

/** Why an exchange brought fewer jobs than it was to: no more wait, none may start as the queue is paused, or no more for so long. */
export type Supply = 'more' | 'empty' | 'paused' | { readonly limitedForMs: number };

export type ExchangeAnswer =
  | {
      readonly kind: 'exchanged';
      /** Ids among the settled that this worker no longer held; nothing was done for them. */
      readonly lost: readonly string[];
      readonly claimed: readonly ClaimedJob[];
      /** Whether fewer were claimed than wanted because of `maxBytes`; a repetition never says so. */
      readonly isCut: boolean;
      readonly supply: Supply;
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

/** What a worker that had nothing to settle was given; of the queue it says nothing else. */
export interface ClaimAnswer {
  readonly kind: 'claimed';
  readonly claimed: readonly ClaimedJob[];
  /** As of an exchange. */
  readonly isCut: boolean;
  /** Jobs under this worker from now on, as the store counts them; null where it has not, which is where something was claimed. */
  readonly held: number | null;
}

/** What became of a call that was left at a bell. */
export interface RungClaim {
  /** Whether it was the bell that ended the wait. */
  readonly rung: boolean;
  /** Why the bell cannot be listened to, where the store refuses that; the claim was made all the same. */
  readonly refusal?: Error | undefined;
  /** Whether the bell may have told of more than work: of a time before those that workers know. */
  readonly isOfTime: boolean;
  /** Null: nothing was done, since there is more to do than to claim: the exchange is to be made. */
  readonly answer: ClaimAnswer | null;
}

/** What a look at a queue has found. */
export interface QueueLook {
  readonly queue: string;
  /** Whether it is worth asking for work now: jobs wait, and the queue is not paused; or nothing could be learnt. */
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
  /** Somebody wrote over a number of it, which counts as 0 until `repair` mends it. Else left out. */
  readonly unreadable?: true;
}

export type BeatAnswer =
  | {
      readonly kind: 'alive';
      readonly held: number;
      /** How many it has made. */
      readonly exchanges: number;
      /** Why, by id: jobs this worker holds that were cancelled. Where there are more than 1,000, some of them. */
      readonly cancels: ReadonlyMap<string, string>;
    }
  | { readonly kind: 'unknown-worker' };

export interface HeartbeatPlan {
  readonly leaseMs: number;
  readonly beatMs: number;
  /** How long the event loop may stand still before the leases are left to end. */
  readonly maxBlockMs: number;
  /** Beats arrive at the store from now on: until then they must come from elsewhere. */
  readonly onReady: () => void;
  /** Said for every beat that was answered. */
  readonly onBeat: (queue: string, worker: string, answer: BeatAnswer) => void;
  /** The thread died; beats must come from elsewhere. */
  readonly onFailure: (error: Error) => void;
}

/** A thread that beats for those who hold jobs, and renews what the process says of itself. */
export interface Heartbeat {
  /** From now on beat for this worker of the queue, while it `holds` anything. */
  follow(queue: string, worker: string): void;
  /** Whether the worker of the queue holds jobs: written to shared memory, so it costs nothing and needs no event loop. */
  holds(queue: string, any: boolean): void;
  leave(queue: string): void;
  /** Registers this process, and renews that, with the last record given. */
  show(record: ProcessRecord): void;
  /** Once this has resolved nothing is renewed any more. */
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
  /** The lease is over, but the server has not been seen answering for a beat since: ask again after that. */
  | { readonly kind: 'doubted'; readonly againInMs: number }
  | { readonly kind: 'alive' };

export interface AdoptAnswer {
  readonly unknown: readonly string[];
  readonly lost: readonly string[];
  /** Jobs whose ids nobody can name: dead as corrupt now, under these ids. */
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
}

/** One entry of the stream as it was read. */
export interface QueueEventBatch {
  readonly queue: string;
  /** Number of its first event, told or not: one more than the `last` of the entry before. */
  readonly first: number;
  /** Number of the last event in the batch: where to go on. */
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
  /** JSON, of a progress event. */
  readonly progress: string | null;
}

/** Every move of a job, in the past tense. */
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
  'paused',
  'resumed',
] as const;

/** Which move of a job or of a queue an event tells, in the past tense. */
export type EventType = (typeof EVENT_TYPES)[number];

/** What is kept of a queue. */
export interface QueueLimits {
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
  /** Completed jobs kept, however long their retention. */
  readonly completedMax: number;
}
