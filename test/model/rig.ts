import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { Redis } from 'ioredis';
import type { EngineSettings } from '#lib/engine/wire/clients.js';
import type { QueueEngine } from '#lib/contract/engine.js';
import { QueueKeys } from '#lib/engine/keys.js';
import { RedisEngine } from '#lib/engine/redis-engine.js';
import { patchedClient, virtualClock, type Around, type Patch } from '../support/patched-client.js';
import type { ModelLimits } from './queue-model.js';
import { readState, type Snapshot, type State } from './state.js';

export const PREFIX = 'model';
export const QUEUE = 'q';
/** Small, so that a short sequence comes to them. */
export const LIMITS: ModelLimits = {
  leaseMs: 8_000,
  recordMs: 600_000,
  deadMax: 3,
  deadAgeMs: 600_000,
  completedMax: 3,
};
export const BEAT_MS = 2_000;
export const MAX_STALLS = 3;

/** What becomes of a call of a script: answered; done, but its answer is lost; or lost on the way there. */
export type Fate = 'answered' | 'reply lost' | 'call lost';

/** What a sequence of commands is played on: an engine, its clock, and a look at all it keeps. */
export interface AnyRig {
  /** Set before a call; whether its script was run is told after it. */
  fate: Fate;
  readonly wasRun: boolean;
  readonly engine: QueueEngine;
  /** Nothing is kept, and the clock is at this time. */
  reset(now: number): Promise<void>;
  setClock(now: number): Promise<void>;
  /** The time of these keys is over. */
  expire(kinds: readonly string[]): Promise<void>;
  /** As a worker does that is woken. */
  takeBell(): Promise<void>;
  snapshot(afterEvent: number): Promise<Snapshot>;
  /** What of a state of the model can be seen here. */
  visible(state: State): State;
}

export interface RigOptions {
  /** Before the clock is taken out of the scripts. */
  readonly patch?: Patch;
  readonly engines?: number;
  /** In place of `fate`. */
  readonly around?: Around;
  readonly commands?: readonly string[];
  readonly callMs?: number;
}

/** A server with nothing else on it, and engines on it whose scripts take the time from a key. */
export class Rig implements AnyRig {
  readonly keys = new QueueKeys(PREFIX, QUEUE);
  private readonly tag = this.keys.fixed.meta.slice(0, -'meta'.length);
  fate: Fate = 'answered';
  wasRun = false;

  private constructor(
    readonly admin: Redis,
    readonly engines: readonly RedisEngine[],
  ) {}

  static async open(url: string, more: RigOptions = {}): Promise<Rig> {
    const admin = new Redis(url, { connectionName: 'model-admin' });
    const engines: RedisEngine[] = [];
    const rig = new Rig(admin, engines);
    const patch: Patch = (name, text) => virtualClock(name, more.patch ? more.patch(name, text) : text);
    const around = more.around ?? ((_, send) => rig.suffer(send));
    const connection = patchedClient(url, {
      patch,
      around,
      commands: more.commands ?? [],
    }) as EngineSettings['connection'];
    const { leaseMs, deadMax, deadAgeMs, completedMax } = LIMITS;
    const limitsOf = () => ({
      maxEvents: 10_000,
      deadMax,
      deadAgeMs,
      completedMax,
      eventsAgeMs: null,
      eventsMaxBytes: 67_108_864,
    });
    for (let i = 0; i < (more.engines ?? 1); i++) {
      const engine = new RedisEngine({
        connection,
        prefix: PREFIX,
        leaseMs,
        callMs: more.callMs ?? 10_000,
        limitsOf,
      });
      engines.push(engine);
      await engine.open();
    }
    return rig;
  }

  get engine(): QueueEngine {
    return this.engines[0]!;
  }

  /** An empty server, its clock at this time. */
  async reset(now: number): Promise<void> {
    await this.admin.flushall();
    await this.setClock(now);
  }

  async setClock(now: number): Promise<void> {
    await this.admin.set(`${this.tag}clock`, now);
  }

  /** The clock of the scripts is ours, but not that by which Redis lets keys end. */
  async expire(kinds: readonly string[]): Promise<void> {
    for (const kind of kinds) await this.admin.del(this.keyOf(kind));
  }

  async takeBell(): Promise<void> {
    await this.admin.zpopmin(this.keyOf('doorbell'));
  }

  visible(state: State): State {
    return state;
  }

  keyOf(kind: string): string {
    return this.tag + kind;
  }

  snapshot(afterEvent: number): Promise<Snapshot> {
    return readState(this.admin, this.tag, afterEvent);
  }

  async close(): Promise<void> {
    for (const engine of this.engines) await engine.close();
    this.admin.disconnect();
  }

  private async suffer(send: () => Promise<unknown>): Promise<unknown> {
    const { fate } = this;
    this.fate = 'answered';
    this.wasRun = false;
    if (fate === 'call lost') throw new Error('the call was lost');
    try {
      const reply = await send();
      this.wasRun = true;
      if (fate === 'answered') return reply;
    } catch (error) {
      if (fate === 'answered') throw error;
    }
    throw new Error('the reply was lost');
  }
}

/** Fast where they are equal; else it fails with the difference. */
export function expectSame(actual: unknown, expected: unknown, what: string): void {
  if (isDeepStrictEqual(actual, expected)) return;
  assert.deepStrictEqual(actual, expected, undefined);
  throw new Error(what);
}
