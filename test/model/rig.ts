import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { Redis } from 'ioredis';
import type { EngineSettings } from '#lib/engine/wire/clients.js';
import type { ClaimAnswer, ExchangeCall, QueueLimits } from '#lib/contract/engine.js';
import { SHARED } from '#lib/contract/limit-verbs.js';
import { QueueKeys } from '#lib/engine/keys.js';
import { RedisEngine } from '#lib/engine/redis-engine.js';
import { claim } from '#lib/engine/scripts/work.js';
import { after, patchedClient, virtualClock, type Around, type Patch } from '../support/patched-client.js';
import { readState, type Snapshot } from './state.js';

const PREFIX = 'model';
export const QUEUE = 'q';
/** How the keys of the queue without a name begin. */
export const SHARED_TAG = new QueueKeys(PREFIX, SHARED).fixed.meta.slice(0, -'meta'.length);
export const LEASE_MS = 8_000;
/** Small, so that a short sequence reaches them. */
export const LIMITS: QueueLimits = {
  leaseMs: LEASE_MS,
  logsMax: 100,
  maxEvents: 10_000,
  eventsAgeMs: 15_000,
  eventsMaxBytes: 67_108_864,
  progressMaxBytes: 67_108_864,
  // So many that no death starts a trim by itself, at a time that no command has chosen.
  deadMaxBytes: 2 ** 50,
  deadMax: 3,
  deadAgeMs: 600_000,
  completedMax: 3,
  cancelledMs: 5_000,
};
export const BEAT_MS = 2_000;
export const MAX_STALLS = 3;

/** How a call of a script ends. With `reply lost` the script has run. */
export type Fate = 'answered' | 'reply lost' | 'call lost';

interface RigOptions {
  /** Before the clock in the scripts is replaced. */
  readonly patch?: Patch;
  readonly engines?: number;
  /** Instead of `fate`. */
  readonly around?: Around;
  readonly commands?: readonly string[];
  readonly callMs?: number;
}

/** A server for this test alone, with engines whose scripts take the time from a key. */
export class Rig {
  readonly keys = new QueueKeys(PREFIX, QUEUE);
  private readonly tag = this.keys.fixed.meta.slice(0, -'meta'.length);
  /** How the next call ends. `wasRun`: whether its script ran. */
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
    const patch = after(more.patch, virtualClock);
    const around = more.around ?? ((_, send) => rig.suffer(send));
    const connection = patchedClient(url, {
      patch,
      around,
      commands: more.commands ?? [],
    }) as EngineSettings['connection'];
    for (let i = 0; i < (more.engines ?? 1); i++) {
      const engine = new RedisEngine({
        connection,
        prefix: PREFIX,
        callMs: more.callMs ?? 10_000,
        limitsOf: () => LIMITS,
      });
      engines.push(engine);
      await engine.open();
    }
    return rig;
  }

  get engine(): RedisEngine {
    return this.engines[0]!;
  }

  /** An empty server, with its clock at this time. */
  async reset(now: number): Promise<void> {
    await this.admin.flushall();
    await this.setClock(now);
  }

  async setClock(now: number): Promise<void> {
    // Shared limits are in the queue without a name.
    await this.admin.mset(`${this.tag}clock`, now, `${SHARED_TAG}clock`, now);
  }

  /** The test controls the clock of the scripts, but not the clock by which Redis expires keys. */
  async expire(kinds: readonly string[]): Promise<void> {
    for (const kind of kinds) await this.admin.del(this.keyOf(kind));
  }

  async takeBell(): Promise<void> {
    await this.admin.zpopmin(this.keyOf('doorbell'));
  }

  /** Makes the claim that an idle worker leaves at the bell. Null if an exchange is needed. */
  claimNow(call: ExchangeCall, engine = this.engine): Promise<ClaimAnswer | null> {
    return engine['store'].call(claim, engine['exchanges']['claimOf'](QUEUE, call), 5_000);
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

/** Fast if they are equal; otherwise it fails with the difference. */
export function expectSame(actual: unknown, expected: unknown, what: string): void {
  if (isDeepStrictEqual(actual, expected)) return;
  assert.deepStrictEqual(actual, expected, undefined);
  throw new Error(what);
}
