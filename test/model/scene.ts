import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { ClaimAnswer, ExchangeCall, QueueEngine } from '#lib/contract/engine.js';
import { RedisUnavailableError } from '#lib/errors.js';
import { brokenRules } from './invariants.js';
import { MemoryRig } from './memory-rig.js';
import { expectSame, LEASE_MS, QUEUE, type Fate, type Rig } from './rig.js';
import { membersOf, type Snapshot, type State } from './state.js';

/** A worker with the numbers of its last exchanges. */
interface Worker {
  name: string;
  seq: number;
  pipelinedSeq: number;
  readonly leaseMs: number;
}

interface PastCall {
  readonly call: (engine: QueueEngine) => Promise<unknown>;
  /** Whether a repetition gets the same answer. */
  readonly idempotent: boolean;
  /** Whether it is an exchange, whose repetition may depend on limits that have ended: see {@link Scene.wasLimited}. */
  readonly isExchange: boolean;
}

/** Jobs that wait for a moment: the delay that their event reports is by the clock of the process. */
export const MOMENT = 'moment';

/** The place of one sequence of commands: Redis and the memory engine, at the same time. */
export class Scene {
  now = 1_900_000_000_000;
  readonly memory = new MemoryRig();
  readonly workers: Worker[] = [0, 1, 2].map((n) => worker(n, n === 2 ? 3_000 : LEASE_MS));
  readonly lanes = [0, 1].map((n) => ({ name: `l${n}`, seq: 0 }));
  readonly past: PastCall[] = [];
  /** The state of Redis at the last look. */
  state: State = {};
  lastEvent = 0;
  /** Keys were changed by hand. The memory engine cannot follow that, so only the rules are checked from here on. */
  isAlone = false;
  /** Keys were deleted by hand and not repaired yet. */
  broken = false;
  /** Number of jobs with generated ids. */
  made = 0;
  /** Whether an exchange has found limits. When they have ended, the answer to a repetition depends on what the process remembers. */
  wasLimited = false;
  /** Whether there were schedules. The engines ring in ways of their own when they become due, and compare them by their answers. */
  hasSchedules = false;
  /** Number of the last call to shared limits. */
  shareSeq = 0;
  private names = 3;
  private audited: unknown;

  private constructor(readonly rig: Rig) {}

  static async open(rig: Rig): Promise<Scene> {
    const scene = new Scene(rig);
    scene.memory.setClock(scene.now);
    await rig.reset(scene.now);
    return scene;
  }

  /** Like a worker that is told that it is unknown. */
  rename(old: Worker): void {
    this.workers[this.workers.indexOf(old)] = worker(this.names++, old.leaseMs);
  }

  held(name: string): readonly string[] {
    return membersOf(this.state, `active:${name}`);
  }

  async advance(ms: number): Promise<void> {
    this.now += ms;
    const ended = this.memory.setClock(this.now);
    if (!this.isAlone) await this.rig.expire(ended);
    await this.rig.setClock(this.now);
    await this.compare();
  }

  /**
   * Makes the call on both engines, and compares answers and stores. A call whose answer is lost is repeated with the
   * same numbers; `idempotent` calls must then give the answer of the first time.
   */
  both<A>(
    call: (engine: QueueEngine) => Promise<A>,
    { fate = 'answered', idempotent = false }: { fate?: Fate; idempotent?: boolean } = {},
  ): Promise<A> {
    return this.sides(
      () => call(this.rig.engine),
      () => call(this.memory.engine),
      fate,
      idempotent,
    );
  }

  /** The claim of an idle worker; the memory engine has no verb for it. */
  claimNow(call: ExchangeCall): Promise<ClaimAnswer | null> {
    const onRedis = () => this.rig.claimNow(call).then((answer) => answer && withoutClock(answer));
    return this.sides(onRedis, () => this.memory.claimNow(call), 'answered', false);
  }

  private async sides<A>(
    onRedis: () => Promise<A>,
    inMemory: () => Promise<A>,
    fate: Fate,
    idempotent: boolean,
  ): Promise<A> {
    const { rig, isAlone } = this;
    rig.fate = fate;
    let first: A | undefined;
    if (fate !== 'answered') {
      const isUnknown = (error: unknown) =>
        error instanceof RedisUnavailableError && error.applied === 'unknown';
      await assert.rejects(onRedis, isUnknown);
      if (rig.wasRun && !isAlone) first = await inMemory();
    }
    const answer = await onRedis();
    if (!isAlone) {
      // A claim by limits is a call of its own. If the exchange before it was repeated, the claim itself is not a
      // repetition.
      const given = first === undefined ? (one: A) => one : withoutSupply;
      expectSame(given(answer), given(await inMemory()), 'the answer');
      if (first !== undefined && idempotent)
        expectSame(withoutSupply(answer), withoutSupply(first), 'the answer to a repetition');
    }
    await this.compare();
    return answer;
  }

  private compared(state: State): State {
    if (!this.hasSchedules) return state;
    return Object.fromEntries(Object.entries(state).filter(([key]) => !OF_SCHEDULES.has(key)));
  }

  /** The stores, the events since the last look, the rules, and the findings of the auditors. */
  async compare(): Promise<void> {
    const { rig, memory } = this;
    const after = this.lastEvent;
    const { state, events } = await rig.snapshot(after);
    this.state = state;
    this.lastEvent = Number(valueOf(state, 'events') ?? after);
    if (!this.isAlone) {
      const expected = memory.snapshot(after);
      expectSame(this.compared(visible(state)), this.compared(expected.state), 'the state');
      expectSame(events.map(comparable), expected.events.map(comparable), 'the events');
    }
    if (this.broken || isDeepStrictEqual(state, this.audited)) return;
    this.audited = state;
    expectSame(brokenRules(state, this.now), [], 'the rules');
    const audit = await rig.engine.admin.audit(QUEUE);
    if (!this.isAlone) expectSame(audit, await memory.engine.admin.audit(QUEUE), 'the audit');
    expectSame(
      audit.violations.filter(({ kind }) => kind !== 'lease-ahead'),
      [],
      'what the audit finds',
    );
  }
}

const OF_SCHEDULES = new Set(['schedules', 'upcoming', 'firings', 'scheduleOrder', 'doorbell']);

function worker(n: number, leaseMs: number): Worker {
  return { name: `w${n}`, seq: 0, pipelinedSeq: 0, leaseMs };
}

function valueOf(state: State, field: string): string | undefined {
  return state['meta']?.hash?.find(([name]) => name === field)?.[1];
}

/** On Redis an answer includes the time of the store. */
export function withoutClock<A extends object>({
  now: _,
  ...answer
}: A & { now?: number }): Omit<A, 'now'> & A {
  return answer as never;
}

/** Of a queue with limits. */
function withoutSupply<A>(answer: A): A {
  const isLimited = typeof answer === 'object' && answer !== null && 'isLimited' in answer;
  return isLimited ? { ...answer, supply: null, isCut: null } : answer;
}

/** The memory engine does not store times to live, and places within a ms of each other are compared by order alone. */
export function visible(state: State): State {
  return Object.fromEntries(
    Object.entries(state).map(([key, { until: _, ...value }]) => [
      key,
      key === 'delayed'
        ? { zset: value.zset!.map(([id, at]) => [id, String(Math.floor(Number(at)))]) }
        : value,
    ]),
  );
}

function comparable(event: Snapshot['events'][number]) {
  return event.type === 'delayed' && event.name === MOMENT ? { ...event, delayMs: 0 } : event;
}
