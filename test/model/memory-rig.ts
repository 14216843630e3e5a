import type { RawEvent } from '#lib/contract/engine.js';
import { MemoryEngine } from '#lib/memory/memory-engine.js';
import type { MemoryJob } from '#lib/memory/memory-job.js';
import type { MemoryQueue } from '#lib/memory/memory-queue.js';
import type { LastExchange } from '#lib/memory/memory-worker.js';
import { MemoryStore } from '#lib/memory/memory-store.js';
import { RedisUnavailableError } from '#lib/errors.js';
import { LIMITS, QUEUE, type AnyRig, type Fate } from './rig.js';
import { byFirst, type Snapshot, type State } from './state.js';

const { leaseMs, deadMax, deadAgeMs, completedMax } = LIMITS;
const limitsOf = () => ({
  maxEvents: 10_000,
  deadMax,
  deadAgeMs,
  completedMax,
  eventsAgeMs: null,
  eventsMaxBytes: 67_108_864,
});

/** An engine in memory, whose calls and answers can be lost, and a look at its store in the shape that Redis has it. */
export class MemoryRig implements AnyRig {
  fate: Fate = 'answered';
  wasRun = false;
  private now = 0;
  private store!: MemoryStore;
  engine!: MemoryEngine;

  async reset(now: number): Promise<void> {
    this.now = now;
    this.store = new MemoryStore({ now: () => this.now });
    const engine = new MemoryEngine({ store: this.store, leaseMs, limitsOf });
    this.engine = this.lossy(engine);
  }

  async setClock(now: number): Promise<void> {
    this.now = now;
    // What is over by now stays so, should the clock be stepped back: it goes when it is looked at.
    await this.snapshot(Infinity);
  }

  /** Here that is by the same clock. */
  async expire(): Promise<void> {}

  async takeBell(): Promise<void> {
    this.store.bells.take(QUEUE);
  }

  async snapshot(afterEvent: number): Promise<Snapshot> {
    const queue = this.store.at(QUEUE);
    const events: RawEvent[] = queue.events.after(afterEvent).flatMap((batch) => batch.events);
    return {
      state: stateOf(queue, this.store.bells.of(QUEUE)),
      events: events.filter(({ number }) => number > afterEvent),
    };
  }

  /** How long keys have yet to live is not kept as such: it shows when they go. */
  visible(state: State): State {
    return Object.fromEntries(
      Object.entries(state).map(([key, { until: _, ...value }]: [string, any]) => [
        key,
        key === 'delayed' ? { zset: value.zset.map(floored) } : value,
      ]),
    );
  }

  /** The same engine, with this rig between it and those who call it. */
  private lossy<T extends object>(engine: T): T {
    return new Proxy(engine, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function')
          return name === 'admin' || name === 'upkeep' ? this.lossy(member as object) : member;
        return async (...args: unknown[]) => {
          const answer: unknown = await this.suffer(() => member.apply(target, args));
          // On Redis the time by its clock goes along.
          return name === 'exchange' ? { ...(answer as object), now: this.now } : answer;
        };
      },
    });
  }

  private async suffer(call: () => Promise<unknown>): Promise<unknown> {
    const { fate } = this;
    this.fate = 'answered';
    this.wasRun = false;
    const lost = new RedisUnavailableError('a verb', 'unknown', fate);
    if (fate === 'call lost') throw lost;
    const answer = await call();
    this.wasRun = true;
    if (fate === 'reply lost') throw lost;
    return answer;
  }
}

/** Where a job stands within its ms is seen by the order alone. */
function floored([id, score]: [string, string]): [string, string] {
  return [id, String(Math.floor(Number(score)))];
}

type Pairs = readonly (readonly [string, string | number])[];

/** A store in the shape of the keys on Redis. */
function stateOf(queue: MemoryQueue, bells: ReadonlySet<string>): State {
  const out: Record<string, unknown> = {};
  const put = (key: string, shape: 'hash' | 'zset', values: Pairs) => {
    const sorted = values.map(([k, v]): [string, string] => [k, String(v)]);
    if (values.length > 0) out[key] = { [shape]: shape === 'hash' ? sorted.toSorted(byFirst) : sorted };
  };
  const jobs = [...queue.jobs.values()];
  const of = (value: (job: MemoryJob) => string | number | null | undefined | false): Pairs =>
    jobs.flatMap((job): [string, string | number][] => {
      const found = value(job);
      return found === null || found === undefined || found === false ? [] : [[job.id, found]];
    });
  put(
    'jobs',
    'hash',
    of(({ body }) => body),
  );
  put(
    'attempts',
    'hash',
    of(({ failed, started }) => (failed > 0 || started) && failed),
  );
  put(
    'stalls',
    'hash',
    of(({ stalls }) => stalls > 0 && stalls),
  );
  put(
    'failures',
    'hash',
    of(({ failure }) => failure && `${failure.at}\n${failure.json}`),
  );
  put('results', 'hash', of(resultOf));
  put(
    'progress',
    'hash',
    of(({ progress }) => progress),
  );
  put(
    'logs',
    'hash',
    of(({ logs }) => logs.length > 0 && logs.join('\n')),
  );
  put(
    'priorities',
    'hash',
    of(({ priority }) => priority > 0 && priority),
  );
  put(
    'toCancel',
    'hash',
    of(({ cancel }) => cancel),
  );
  queue.dropOldCancelled();
  put(
    'cancelled',
    'hash',
    [...queue.cancelled].map(([id, { at, reason }]) => [id, `${at}\n${reason}`]),
  );
  for (const place of ['prioritized', 'delayed', 'completed', 'dead'] as const)
    put(
      place,
      'zset',
      queue[place].sorted().map(({ id, score }) => [id, place === 'delayed' ? Math.floor(score) : score]),
    );
  for (const line of ['wait', 'suspects'] as const)
    if (queue[line].size > 0) out[line] = { list: Array.from(queue[line], ({ id }) => id) };
  for (const [name, { until, seq, duplicates }] of queue.lanes) {
    if (until <= queue.now) queue.lanes.delete(name);
    else out[`lane:${name}`] = { string: [`${seq}\n${duplicates.join('\n')}`] };
  }
  put(
    'doorbell',
    'zset',
    [...bells].toSorted().map((bell) => [bell, 0]),
  );
  const meta: [string, number][] = [];
  if (queue.events.last > 0) meta.push(['events', queue.events.last]);
  if (queue['ranks'] > 0) meta.push(['ranks', queue['ranks']]);
  if (queue.pausedAt !== null) meta.push(['paused', queue.pausedAt]);
  put('meta', 'hash', meta);
  addWorkers(queue, out, put);
  addCounters(queue, put);
  return Object.fromEntries(
    Object.keys(out)
      .toSorted()
      .map((key) => [key, out[key]]),
  );
}

function resultOf({ end }: MemoryJob): string | null {
  if (!end) return null;
  const { attempt, durationUs, result } = end;
  return `${end.at}\n${JSON.stringify({ attempt, us: durationUs, result })}`;
}

type Put = (key: string, shape: 'hash' | 'zset', values: Pairs) => void;

function addWorkers(queue: MemoryQueue, out: Record<string, unknown>, put: Put): void {
  const leases = [...queue.leased()].toSorted((a, b) => a.leaseAt - b.leaseAt || (a.name < b.name ? -1 : 1));
  put(
    'workers',
    'zset',
    leases.map(({ name, leaseAt }) => [name, leaseAt]),
  );
  for (const worker of queue.workers.values()) {
    const { name, held } = worker;
    if (held.size > 0) out[`active:${name}`] = { set: [...held.keys()].toSorted() };
    const record = worker.recordAt(queue.now);
    if (!record) continue;
    const { last, beside, leaseMs: ms, doubt, pause } = record;
    const fields: [string, string | number][] = [];
    if (doubt) fields.push(['doubt', `${doubt.lease} ${doubt.since}`]);
    const add = (one: LastExchange | null, which: string) => {
      if (!one) return;
      const { seq, gave, lost } = one;
      fields.push([`gave${which}`, gave.join('\n')], [`lost${which}`, lost.join('\n')], [`seq${which}`, seq]);
    };
    add(last, '');
    add(beside, '2');
    if (ms !== null) fields.push(['lease', ms]);
    if (pause !== undefined) fields.push(['pause', pause]);
    put(`worker:${name}`, 'hash', fields);
  }
}

function addCounters(queue: MemoryQueue, put: Put): void {
  const sums = new Map<string, number>();
  for (const { counts } of queue.counters['days'].values())
    for (const [field, count] of counts) sums.set(field, (sums.get(field) ?? 0) + count);
  put('stats', 'hash', [...sums]);
}
