import { Log } from '../contract/log.js';
import { ReplaySubject, Subject, type Observable } from 'rxjs';
import type { DispatchAnswer, TaskVerbs } from '../contract/task-verbs.js';
import { retryDelay, within } from '../contract/retry.js';
import { GuardedObservable } from '../events/guarded-observable.js';
import type { ResolvedDispatcherOptions } from '../options/dispatcher-options.js';
import { DispatchLoop } from './dispatch-loop.js';

/** A batch of tasks that was moved. */
export interface DispatchedBatch {
  /** When the reply arrived, in ms since 1970, by this process's estimate of the clock of Redis. */
  readonly at: number;
  /** Tasks moved to the list, at least 1. */
  readonly dispatched: number;
  /** Tasks left in the sorted set, due or not. */
  readonly delayed: number;
  /** Tasks in the list, just after these were moved. */
  readonly ready: number;
}

/** State of a dispatcher. */
export type DispatcherStatus =
  /** Not running: the application has not started or has stopped, or the role is `producer`. */
  | { readonly state: 'stopped' }
  /** The last call succeeded, or none has been made yet. */
  | { readonly state: 'running' }
  /** The last call failed; it is made again until it succeeds. */
  | {
      readonly state: 'failing';
      /** Error of the last call. */
      readonly error: Error;
    };

/** The part of the engine that a dispatcher needs. */
export interface DispatcherEngine {
  readonly tasks: TaskVerbs;
  now(): number;
}

/** How long `stop` waits for a call in flight. The call is atomic, so its reply is not needed. */
const STOP_MS = 500;

/**
 * Moves due tasks from a sorted set, which other programs fill, to a list, from which other programs take them. It starts and stops
 * with the application. Any number of dispatchers may work on the same keys, also in other processes: every task is moved once.
 * Inject it with `@InjectDispatcher`.
 *
 * If a subscriber throws, the error is logged and it stays subscribed.
 *
 * @example
 * constructor(@InjectDispatcher('mails') mails: Dispatcher) {
 *   mails.moved$.subscribe(({ dispatched, ready }) => gauge.set({ dispatched, ready }));
 * }
 */
export class Dispatcher {
  /** The registered name; by default the `delayedKey`. */
  readonly name: string;
  /** The sorted set that it empties. */
  readonly delayedKey: string;
  /** The list that it fills. */
  readonly readyKey: string;
  /** Every batch that is moved from now on, by this process. Completes when the application stops. */
  readonly moved$: Observable<DispatchedBatch>;
  /** The current `status`, and each change. Completes when the application stops. */
  readonly status$: Observable<DispatcherStatus>;
  private readonly logger = new Log('QueueDispatcher');
  private readonly moved = new Subject<DispatchedBatch>();
  private readonly statuses = new ReplaySubject<DispatcherStatus>(1);
  private current: DispatcherStatus = { state: 'stopped' };
  private running: { readonly loop: DispatchLoop; readonly ended: Promise<void> } | null = null;

  /** @internal */
  constructor(
    private readonly engine: DispatcherEngine,
    private readonly options: ResolvedDispatcherOptions,
  ) {
    this.name = options.name;
    this.delayedKey = options.delayedKey;
    this.readyKey = options.readyKey;
    this.moved$ = new GuardedObservable((subscriber) => this.moved.subscribe(subscriber));
    this.status$ = new GuardedObservable((subscriber) => this.statuses.subscribe(subscriber));
    this.statuses.next(this.current);
  }

  /** Its current state. */
  get status(): DispatcherStatus {
    return this.current;
  }

  /** @internal Safe twice. */
  start(): void {
    if (this.running) return;
    const { delayedKey, readyKey, batchSize: limit, unit, maxReady } = this.options;
    const loop = new DispatchLoop({
      dispatch: () => this.engine.tasks.dispatch({ delayedKey, readyKey, limit, unit, maxReady }),
      answered: (answer) => this.answered(answer),
      failed: (error, tries) => this.failed(error, tries),
    });
    this.setStatus({ state: 'running' });
    this.running = { loop, ended: loop.run() };
  }

  /** @internal Never rejects. May be called more than once, and before `start`. */
  async stop(): Promise<void> {
    const { running } = this;
    if (!running) return;
    this.running = null;
    running.loop.stop();
    await within(STOP_MS, running.ended);
    this.setStatus({ state: 'stopped' });
  }

  /** @internal For good. */
  close(): void {
    this.moved.complete();
    this.statuses.complete();
  }

  private answered({ dispatched, delayed, ready, dueInMs }: DispatchAnswer): number {
    if (this.current.state === 'failing') {
      this.logger.log(`dispatcher '${this.name}' works again`);
      this.setStatus({ state: 'running' });
    }
    if (dispatched > 0 && this.moved.observed) {
      this.moved.next({ at: this.engine.now(), dispatched, delayed, ready });
    }
    const { pollMs } = this.options;
    if (dueInMs === null) return pollMs;
    // A task that is due and was not moved waits for room in the list.
    return dueInMs === 0 && dispatched === 0 ? pollMs : Math.min(dueInMs, pollMs);
  }

  private failed(given: unknown, tries: number): number {
    const error = given instanceof Error ? given : new Error(String(given));
    const known = this.current.state === 'failing' ? this.current.error : undefined;
    // The message of one fault may differ between calls, for example when the connection is opened again.
    if (kindOf(known) !== kindOf(error)) {
      this.logger.error(`dispatcher '${this.name}' cannot move tasks, retrying: ${error.message}`);
    }
    if (known?.message !== error.message) this.setStatus({ state: 'failing', error });
    return Math.min(retryDelay(tries), this.options.pollMs);
  }

  private setStatus(status: DispatcherStatus): void {
    this.current = status;
    this.statuses.next(status);
  }
}

function kindOf(error: (Error & { code?: unknown; reply?: unknown }) | undefined): string {
  return error ? [error.name, error.code, error.reply].join(' ') : '';
}
