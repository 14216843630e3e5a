import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { BeatAnswer, Heartbeat, HeartbeatPlan, LeaseTimes, LinkEvent } from '../contract/engine.js';
import { DEFAULT_CONNECTION, type RedisConnection } from '../options/connection.js';
import type { EngineSettings } from './wire/clients.js';
import type { QueueKeys } from './keys.js';
import { decodeOrders } from './codec/process-codec.js';
import { toShown, type ShownRecord } from './process-renewal.js';
import type { ProcessRecord } from '../contract/process-verbs.js';

/** The start message of the thread. All its values can be cloned. */
export interface HeartbeatStart {
  readonly connection: Exclude<RedisConnection, (...args: never[]) => unknown>;
  readonly prefix: string;
  readonly leaseMs: number;
  readonly beatMs: number;
  readonly maxBlockMs: number;
  readonly callMs: number;
  /**
   * Int32 values. At 0: a number that increases while the event loop runs. After it, for each slot: whether its worker holds
   * jobs. Last: 0 while the thread loads, 1 when it has begun, 2 if it was closed before that.
   */
  readonly shared: SharedArrayBuffer;
}

export type ToThread =
  | {
      readonly kind: 'follow';
      readonly slot: number;
      readonly queue: string;
      readonly worker: string;
      readonly lease: LeaseTimes;
      readonly keys: [string, string, string, string];
    }
  | { readonly kind: 'leave'; readonly slot: number }
  | { readonly kind: 'show'; readonly record: ShownRecord }
  | { readonly kind: 'close' };

export type FromThread =
  | { readonly kind: 'beat'; readonly queue: string; readonly worker: string; readonly answer: BeatAnswer }
  | { readonly kind: 'orders'; readonly orders: string }
  | { readonly kind: 'lost' }
  | { readonly kind: 'link'; readonly state: 'up' | 'down'; readonly message?: string };

const MAX_SLOTS = 4096;
const TICK_MS = 250;

/** Starts the thread. Null if the connection settings cannot be passed to a thread. */
export function openHeartbeatThread(
  plan: HeartbeatPlan,
  settings: EngineSettings,
  keysOf: (queue: string) => QueueKeys,
  tell: (event: LinkEvent) => void,
): Heartbeat | null {
  const { connection = DEFAULT_CONNECTION, prefix, callMs } = settings;
  if (typeof connection === 'function') return null;
  const shared = new SharedArrayBuffer(4 * (2 + MAX_SLOTS));
  const { leaseMs, beatMs, maxBlockMs } = plan;
  const start: HeartbeatStart = {
    connection,
    prefix,
    leaseMs,
    beatMs,
    maxBlockMs,
    callMs,
    shared,
  };
  let thread: Worker;
  try {
    thread = new Worker(join(__dirname, 'heartbeat-thread.js'), {
      workerData: start,
      name: 'godwit-heartbeat',
    });
  } catch (error) {
    // A bundle of ES modules has no __dirname.
    plan.onFailure(error as Error);
    return null;
  }
  return new ThreadHeartbeat(thread, new Int32Array(shared), plan, keysOf, tell);
}

class ThreadHeartbeat implements Heartbeat {
  private readonly slots = new Map<string, number>();
  private readonly free: number[] = [];
  private readonly ticker: NodeJS.Timeout;
  private closed = false;
  private shown = '';
  private readonly exited: Promise<void>;

  constructor(
    private readonly thread: Worker,
    private readonly shared: Int32Array,
    plan: HeartbeatPlan,
    private readonly keysOf: (queue: string) => QueueKeys,
    tell: (event: LinkEvent) => void,
  ) {
    thread.unref();
    thread.on('message', (message: FromThread) => {
      if (message.kind === 'beat') return plan.onBeat(message.queue, message.worker, message.answer);
      if (message.kind === 'orders') return plan.onOrders(decodeOrders(message.orders));
      if (message.kind === 'lost') return plan.onDataLost();
      if (message.state === 'up') plan.onReady();
      tell({
        role: 'heartbeat',
        state: message.state,
        ...(message.message && { error: new Error(message.message) }),
      });
    });
    let failure = new Error('the heartbeat thread ended');
    thread.on('error', (error) => (failure = error));
    this.exited = new Promise((resolve) => {
      thread.on('exit', () => {
        clearInterval(this.ticker);
        if (!this.closed) plan.onFailure(failure);
        resolve();
      });
    });
    this.ticker = setInterval(() => Atomics.add(this.shared, 0, 1), TICK_MS).unref();
  }

  follow(queue: string, worker: string, { leaseMs, maxBlockMs }: LeaseTimes): void {
    let slot = this.slots.get(queue);
    if (slot === undefined) {
      slot = this.free.pop() ?? this.slots.size + 1;
      if (slot > MAX_SLOTS) throw new RangeError(`one process serves at most ${MAX_SLOTS} queues`);
      this.slots.set(queue, slot);
    }
    const keys = this.keysOf(queue);
    this.say({
      kind: 'follow',
      slot,
      queue,
      worker,
      lease: { leaseMs, maxBlockMs },
      keys: [keys.fixed.workers, keys.worker(worker), keys.active(worker), keys.fixed.toCancel],
    });
  }

  holds(queue: string, any: boolean): void {
    const slot = this.slots.get(queue);
    if (slot !== undefined) Atomics.store(this.shared, slot, any ? 1 : 0);
  }

  leave(queue: string): void {
    const slot = this.slots.get(queue);
    if (slot === undefined) return;
    Atomics.store(this.shared, slot, 0);
    this.slots.delete(queue);
    this.free.push(slot);
    this.say({ kind: 'leave', slot });
  }

  show(record: ProcessRecord): void {
    const shown = toShown(record);
    if (shown.info === this.shown) return;
    this.shown = shown.info;
    this.say({ kind: 'show', record: shown });
  }

  async close(): Promise<void> {
    if (!this.closed) {
      this.closed = true;
      clearInterval(this.ticker);
      this.thread.ref();
      // A thread needs 0.2 s to load. It has written nothing before that, so it can be terminated.
      const isLoading = Atomics.compareExchange(this.shared, this.shared.length - 1, 0, 2) === 0;
      if (isLoading) void this.thread.terminate();
      else this.say({ kind: 'close' });
    }
    await this.exited;
  }

  private say(message: ToThread): void {
    this.thread.postMessage(message);
  }
}
