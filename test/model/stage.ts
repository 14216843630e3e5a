import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Scheduler } from 'fast-check';
import type { ClaimAnswer, ExchangeCall } from '#lib/contract/engine.js';
import type { RedisEngine } from '#lib/engine/redis-engine.js';
import { clean } from '#lib/engine/scripts/upkeep.js';
import { RedisUnavailableError } from '#lib/errors.js';
import type { JobState } from '#lib/job/job-state.js';
import { Pace } from './pace.js';
import { brokenRules, placesIn, type Place } from './invariants.js';
import type { MemoryRig } from './memory-rig.js';
import { expectSame, LIMITS, QUEUE, type Fate, type Rig } from './rig.js';
import { visible, withoutClock } from './scene.js';
import { membersOf, valuesOf } from './state.js';

/** A verb of the engine on Redis, and the same in memory. */
interface Verb {
  readonly name: string;
  /** The part of this script in an exchange of two scripts. */
  readonly inMemory: (script: string) => Promise<unknown>;
  /** The answer of the memory engine, taken when Redis ran the script of the verb. */
  expected?: { readonly answer: unknown };
}

/** Verbs of several steps, with other calls in between. */
const WALKS = ['audit', 'clean'];

/** Which moves of jobs a script may make; `gone`: the job is deleted. An ended job stays ended. */
const MOVES: Readonly<Record<string, readonly string[]>> = {
  enqueue: ['gone', 'completed', 'dead', 'cancelled'].flatMap((from) => [
    `${from} waiting`,
    `${from} delayed`,
  ]),
  'enqueue-plain': ['gone waiting'],
  claim: ['waiting active'],
  'claim-limited': ['waiting active'],
  exchange: [
    'active gone',
    'active completed',
    'active delayed',
    'active waiting',
    'active dead',
    'waiting active',
    'delayed waiting',
    'delayed active',
    'active cancelled',
    'completed gone',
    'dead gone',
  ],
  release: ['active waiting', 'active gone', 'active cancelled'],
  recover: ['active waiting', 'active dead', 'active gone', 'active cancelled', 'dead gone'],
  promote: ['delayed waiting'],
  'promote-now': ['delayed waiting'],
  cancel: ['waiting gone', 'delayed gone', 'waiting cancelled', 'delayed cancelled'],
  remove: ['waiting gone', 'delayed gone', 'dead gone', 'completed gone', 'cancelled gone'],
  'retry-dead': ['dead waiting'],
  clean: ['waiting gone', 'delayed gone', 'dead gone', 'completed gone', 'cancelled gone'],
  trim: ['completed gone', 'dead gone', 'cancelled gone'],
};
/** Scripts that move no job. */
const STILL = ['adopt', 'beat', 'charge', 'counts', 'get', 'note', 'overdue', 'pause', 'set-limits', 'share'];

/**
 * Runs several engines at once. A scheduler decides which call reaches Redis next and which answer arrives next. Each
 * call is checked alone: what it moved, whether the rules hold after it, and whether the memory engine has the same
 * answer and state if its calls are made in the order in which Redis ran them.
 */
export class Stage {
  now = 1_900_000_000_000;
  /** Added jobs, and jobs that were settled as completed, from the store. */
  born = 0;
  completed = 0;
  /** Jobs that were removed without having completed. */
  gone = 0;
  /** Violations; the caller would take them for an error of the connection. */
  private failure: unknown;
  private places: ReadonlyMap<string, Place> = new Map();
  private leases: ReadonlyMap<string, string> = new Map();
  /** The largest number of kept completed jobs: more were removed before their time. */
  private isFull = false;
  /** Active jobs that were cancelled, and how many of them ended so. */
  private marked: ReadonlySet<string> = new Set();
  private cancelled = 0;
  private readonly pace = new Pace();
  private readonly verbs = new AsyncLocalStorage<Verb>();

  constructor(
    readonly rig: Rig,
    private readonly scheduler: Scheduler,
    private readonly nextFate: () => Fate,
    /** Null: only the rules are checked. */
    private readonly memory: MemoryRig | null,
    /** The queue has limits and groups from the beginning. */
    readonly isGrouped: boolean,
  ) {
    memory?.setClock(this.now);
  }

  /** The engine; each of its verbs is compared with that of the memory engine. */
  watched(engine: RedisEngine): RedisEngine {
    return this.memory ? this.watch(engine, this.memory.engine) : engine;
  }

  private watch<T extends object>(target: T, reference: object): T {
    return new Proxy(target, {
      get: (_, name) => {
        const member: unknown = Reflect.get(target, name);
        if (name === 'admin' || name === 'upkeep' || name === 'limits')
          return this.watch(member as object, Reflect.get(reference, name) as object);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          const ask = (one: object) =>
            (Reflect.get(one, name) as typeof member).apply(one, args) as Promise<unknown>;
          return this.same(
            String(name),
            () => ask(target),
            name === 'exchange'
              ? (script) => this.memory!.exchangeStep(script, args[1] as ExchangeCall)
              : () => ask(reference),
          );
        };
      },
    });
  }

  claimNow(engine: RedisEngine, call: ExchangeCall): Promise<ClaimAnswer | null> {
    const onRedis = () => this.rig.claimNow(call, engine);
    const { memory } = this;
    return memory ? this.same('claim', onRedis, () => memory.claimNow(call)) : onRedis();
  }

  private async same<A>(
    name: string,
    onRedis: () => Promise<A>,
    inMemory: (script: string) => Promise<unknown>,
  ): Promise<A> {
    const verb: Verb = { name, inMemory };
    const answer = await this.verbs.run(verb, onRedis);
    // The two scripts of an exchange are one call for the caller; the state after each shows what they did.
    const isOfSteps = name === 'exchange' && this.memory!.isLimited;
    if (!WALKS.includes(name) && !isOfSteps) expectSame(plain(answer), plain(verb.expected?.answer), name);
    return answer;
  }

  /** Like exchanger and enqueuer: a call without an answer is repeated with the same numbers. */
  async insist<A>(call: () => Promise<A>): Promise<A> {
    for (;;) {
      this.expectFine();
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof RedisUnavailableError)) throw error;
      }
    }
  }

  expectFine(): void {
    if (this.failure !== undefined) throw this.failure;
  }

  advance(ms: number): Promise<void> {
    return this.alone('advance', async () => {
      this.now += ms;
      const ended = this.memory?.setClock(this.now) ?? [];
      await this.rig.expire(ended);
      await this.rig.setClock(this.now);
    });
  }

  async around(name: string, send: () => Promise<unknown>, args: readonly unknown[]): Promise<unknown> {
    const fate = this.nextFate();
    const verb = this.verbs.getStore();
    const reply = await this.alone(name, async () => {
      if (fate === 'call lost') return undefined;
      const sent = await send().then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      const look = async () => {
        if (verb && 'value' in sent) await this.follow(verb, name, sent.value);
        await this.look(name, args);
      };
      await look().catch((error: unknown) => (this.failure ??= error));
      return sent;
    });
    await this.alone(`${name}: ${fate}`, () => Promise.resolve());
    if (fate !== 'answered' || !reply) throw new Error('the connection broke');
    if ('error' in reply) throw reply.error;
    return reply.value;
  }

  /** One choice of the scheduler, from start to end. */
  private alone<T>(label: string, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      void this.scheduler.schedule(Promise.resolve(), label, undefined, async (picked) => {
        await picked();
        await work().then(resolve, reject);
      });
    });
  }

  /** The memory engine does the same as this script. */
  private async follow(verb: Verb, script: string, reply: unknown): Promise<void> {
    // It only read, or left everything to another script.
    const isNothing = script === 'enqueue-plain' && reply === 0;
    if (isNothing || !(script in MOVES || STILL.includes(script)) || [reply].flat()[0] === 'again') return;
    if (verb.name === 'clean') {
      for (const id of clean.reply(reply as never).ids) await this.memory!.engine.admin.remove(QUEUE, id);
    } else verb.expected = { answer: await verb.inMemory(script) };
  }

  /** Checks the rules, and what this call has moved. */
  async look(name: string, args: readonly unknown[]): Promise<void> {
    const { state } = await this.rig.snapshot(Number.MAX_SAFE_INTEGER);
    if (this.memory)
      expectSame(visible(state), this.memory.snapshot(Infinity).state, `the state after ${name}`);
    expectSame(brokenRules(state, this.now), [], 'the rules');
    const worker = args.map((arg) => /:worker:(.+)$/.exec(String(arg))?.[1]).find(Boolean);
    const after = placesIn(state);
    const kept = [...after.values()].filter((place) => place.state === 'completed').length;
    this.isFull = kept >= LIMITS.completedMax;
    for (const id of new Set([...this.places.keys(), ...after.keys()])) {
      this.moved(name, worker, id, this.places.get(id), after.get(id));
    }
    if (this.isGrouped) this.pace.follow(name, this.now, state, this.places, after);
    this.places = after;
    this.marked = new Set(membersOf(state, 'toCancel'));
    const cancelled = Number(valuesOf(state, 'stats').get('cancelled') ?? 0);
    // The store does not show how a job left its worker in an exchange: in either case it is gone.
    if (name === 'exchange') {
      this.completed -= cancelled - this.cancelled;
      this.gone += cancelled - this.cancelled;
    }
    this.cancelled = cancelled;
    this.leases = valuesOf(state, 'workers');
  }

  private moved(
    name: string,
    worker: string | undefined,
    id: string,
    from: Place | undefined,
    to: Place | undefined,
  ): void {
    if (from?.state === to?.state && from?.worker === to?.worker) return;
    if (this.isGrouped && to?.state === 'active')
      assert.equal(name, 'claim-limited', `${name} started ${id}`);
    const move = `${from?.state ?? 'gone'} ${to?.state ?? 'gone'}`;
    const what = `${name} of ${worker ?? 'nobody'} moved ${id}: ${move}`;
    assert(MOVES[name]?.includes(move), what);
    // A job that was cancelled while it ran never comes back, and no other job ends because of its worker.
    if (this.marked.has(id)) assert(!to || isOver(to), `${what}, although it was cancelled`);
    else assert(!['release', 'recover'].includes(name) || move !== 'active gone', what);
    // Only the holder moves a job, and only its own lease lets a worker hold one.
    if (from?.worker !== undefined) assert.equal(from.worker, worker, what);
    if (to?.worker !== undefined) assert.equal(to.worker, worker, what);
    if (from?.state === 'delayed' && !['promote-now', 'remove', 'cancel', 'clean'].includes(name))
      assert(Math.floor(from.at!) <= this.now, `${what}, too early`);
    if (name === 'recover' && worker)
      assert(Number(this.leases.get(worker)) <= this.now, `${what}, too early`);
    // A new job has taken the id of an ended one.
    const isReplaced = name === 'enqueue' && from !== undefined && to !== undefined;
    const isRetired =
      from?.state === 'completed' && !isReplaced && !['remove', 'clean'].includes(name) && !this.isFull;
    if (isRetired) assert(from.at! <= this.now, `${what}, too early`);
    if (to && (!from || isReplaced || from.state === 'completed')) this.born += 1;
    const hasEnded = !to || isOver(to);
    if (name === 'exchange' && from?.state === 'active') this.completed += hasEnded ? 1 : 0;
    else if (from && !isOver(from) && (hasEnded || isReplaced)) this.gone += 1;
  }

  /** Jobs that have not completed. */
  unfinished(): number {
    return [...this.places.values()].filter((place) => !isOver(place)).length;
  }

  countOf(state: JobState): number {
    return [...this.places.values()].filter((place) => place.state === state).length;
  }
}

/** Whether the job is kept and will not run again. */
function isOver({ state }: Place): boolean {
  return state === 'completed' || state === 'cancelled';
}

/** The answer without what may differ: the time on Redis, and the order of sets. */
function plain(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return answer;
  const { unknown: ids, ...more } = withoutClock(answer as { unknown?: string[] });
  return ids ? { ...more, unknown: ids.toSorted() } : more;
}
