import assert from 'node:assert/strict';
import type { Scheduler } from 'fast-check';
import { RedisUnavailableError } from '#lib/errors.js';
import type { JobState } from '#lib/job/job-state.js';
import { brokenRules } from './invariants.js';
import { expectSame, LIMITS, type Fate, type Rig } from './rig.js';
import type { State } from './state.js';

interface Place {
  readonly state: JobState;
  /** Who holds it. */
  readonly worker?: string;
  /** When it may run, or is to be removed. */
  readonly at?: number;
}

/** From where to where a script may move jobs; `gone` is nowhere. What has ended stays so, whoever says what. */
const MOVES: Readonly<Record<string, readonly string[]>> = {
  enqueue: ['gone waiting', 'gone delayed', 'completed waiting', 'completed delayed'],
  'enqueue-plain': ['gone waiting'],
  claim: ['waiting active'],
  exchange: [
    'active gone',
    'active completed',
    'active delayed',
    'active waiting',
    'active dead',
    'waiting active',
    'delayed waiting',
    'delayed active',
    'completed gone',
    'dead gone',
  ],
  release: ['active waiting', 'active gone'],
  recover: ['active waiting', 'active dead', 'active gone', 'dead gone'],
  promote: ['delayed waiting'],
  'promote-now': ['delayed waiting'],
  cancel: ['waiting gone', 'delayed gone'],
  remove: ['waiting gone', 'delayed gone', 'dead gone', 'completed gone'],
  'retry-dead': ['dead waiting'],
  clean: ['waiting gone', 'delayed gone', 'dead gone', 'completed gone'],
  trim: ['completed gone', 'dead gone'],
};

/**
 * Where several engines play at once. A scheduler decides which call reaches Redis next and whose answer arrives next; each
 * call is looked at alone: what it moved, and whether the rules hold after it.
 */
export class Stage {
  now = 1_900_000_000_000;
  /** Jobs that came in, and jobs that were settled as completed, as the store shows it. */
  born = 0;
  completed = 0;
  /** Jobs that went without having completed. */
  gone = 0;
  /** What a look found; the caller of the call it came from would take it for an error of the connection. */
  private failure: unknown;
  private places: ReadonlyMap<string, Place> = new Map();
  private leases: ReadonlyMap<string, number> = new Map();
  /** As many completed jobs as are kept: others may have gone before their time. */
  private isFull = false;
  /** Active jobs that were cancelled, and how many ended so. */
  private marked: ReadonlySet<string> = new Set();
  private cancelled = 0;

  constructor(
    readonly rig: Rig,
    private readonly scheduler: Scheduler,
    private readonly nextFate: () => Fate,
  ) {}

  /** As exchanger and enqueuer do: what got no answer is said again with the same numbers. */
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
      await this.rig.setClock(this.now);
    });
  }

  async around(name: string, send: () => Promise<unknown>, args: readonly unknown[]): Promise<unknown> {
    const fate = this.nextFate();
    const reply = await this.alone(name, async () => {
      if (fate === 'call lost') return undefined;
      const sent = await send().then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      await this.look(name, args).catch((error: unknown) => (this.failure ??= error));
      return sent;
    });
    await this.alone(`${name}: ${fate}`, () => Promise.resolve());
    if (fate !== 'answered' || !reply) throw new Error('the connection broke');
    if ('error' in reply) throw reply.error;
    return reply.value;
  }

  /** What the scheduler picks next, from its beginning to its end. */
  private alone<T>(label: string, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      void this.scheduler.schedule(Promise.resolve(), label, undefined, async (picked) => {
        await picked();
        await work().then(resolve, reject);
      });
    });
  }

  /** The rules, and what this call has moved. */
  async look(name: string, args: readonly unknown[]): Promise<void> {
    const { state } = await this.rig.snapshot(Number.MAX_SAFE_INTEGER);
    expectSame(brokenRules(state, this.now), [], 'the rules');
    const worker = args.map((arg) => /:worker:(.+)$/.exec(String(arg))?.[1]).find(Boolean);
    const after = placesIn(state);
    const kept = [...after.values()].filter((place) => place.state === 'completed').length;
    this.isFull = kept >= LIMITS.completedMax;
    for (const id of new Set([...this.places.keys(), ...after.keys()])) {
      this.moved(name, worker, id, this.places.get(id), after.get(id));
    }
    this.places = after;
    const of = (key: string) => ((state[key] ?? {}) as { hash?: [string, string][] }).hash ?? [];
    this.marked = new Set(of('toCancel').map(([id]) => id));
    const cancelled = Number(new Map(of('stats')).get('cancelled') ?? 0);
    // How a job left its worker in an exchange is not to be seen: either way it is gone.
    if (name === 'exchange') {
      this.completed -= cancelled - this.cancelled;
      this.gone += cancelled - this.cancelled;
    }
    this.cancelled = cancelled;
    const { zset = [] } = (state['workers'] ?? {}) as { zset?: [string, string][] };
    this.leases = new Map(zset.map(([holder, end]) => [holder, Number(end)]));
  }

  private moved(
    name: string,
    worker: string | undefined,
    id: string,
    from: Place | undefined,
    to: Place | undefined,
  ): void {
    if (from?.state === to?.state && from?.worker === to?.worker) return;
    const move = `${from?.state ?? 'gone'} ${to?.state ?? 'gone'}`;
    const what = `${name} of ${worker ?? 'nobody'} moved ${id}: ${move}`;
    assert(MOVES[name]?.includes(move), what);
    // What was cancelled while it ran never comes back, and nothing else ends when its worker does.
    if (this.marked.has(id)) assert(!to || to.state === 'completed', `${what}, although it was cancelled`);
    else assert(!['release', 'recover'].includes(name) || move !== 'active gone', what);
    // Only who holds a job moves it, and only its own lease lets a worker hold one.
    if (from?.worker !== undefined) assert.equal(from.worker, worker, what);
    if (to?.worker !== undefined) assert.equal(to.worker, worker, what);
    if (from?.state === 'delayed' && !['promote-now', 'remove', 'cancel', 'clean'].includes(name))
      assert(Math.floor(from.at!) <= this.now, `${what}, too early`);
    if (name === 'recover' && worker) assert(this.leases.get(worker)! <= this.now, `${what}, too early`);
    const isRetired = from?.state === 'completed' && !['remove', 'clean'].includes(name) && !this.isFull;
    if (isRetired) assert(from.at! <= this.now, `${what}, too early`);
    if (to && (!from || from.state === 'completed')) this.born += 1;
    if (name === 'exchange' && from?.state === 'active' && (!to || to.state === 'completed'))
      this.completed += 1;
    if (!to && from && from.state !== 'completed' && !(name === 'exchange' && from.state === 'active'))
      this.gone += 1;
  }

  /** Jobs that have not completed. */
  unfinished(): number {
    return [...this.places.values()].filter(({ state }) => state !== 'completed').length;
  }

  countOf(state: JobState): number {
    return [...this.places.values()].filter((place) => place.state === state).length;
  }
}

function placesIn(state: State): Map<string, Place> {
  const places = new Map<string, Place>();
  const of = (name: string) =>
    (state[name] ?? {}) as { zset?: [string, string][]; list?: string[]; set?: string[] };
  for (const line of ['wait', 'suspects'])
    for (const id of of(line).list ?? []) places.set(id, { state: 'waiting' });
  for (const [id] of of('prioritized').zset ?? []) places.set(id, { state: 'waiting' });
  for (const kind of ['delayed', 'completed', 'dead'] as const)
    for (const [id, at] of of(kind).zset ?? []) places.set(id, { state: kind, at: Number(at) });
  for (const key of Object.keys(state).filter((name) => name.startsWith('active:')))
    for (const id of of(key).set ?? [])
      places.set(id, { state: 'active', worker: key.slice('active:'.length) });
  return places;
}
