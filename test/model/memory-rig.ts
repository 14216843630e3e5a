import { SHARED } from '#lib/contract/limit-verbs.js';
import type { ClaimAnswer, Duplicate, ExchangeCall } from '#lib/contract/engine.js';
import { activated } from '#lib/memory/event-log.js';
import { claim, claimOnce, exchangeOnce } from '#lib/memory/exchange.js';
import { MemoryEngine } from '#lib/memory/memory-engine.js';
import type { Slot } from '#lib/memory/limit-book.js';
import type { LimitUse } from '#lib/memory/rates.js';
import { RULES } from '#lib/job/rules.js';
import { byBytes } from '#lib/memory/lines.js';
import type { MemoryJob, MemoryLine } from '#lib/memory/memory-job.js';
import type { MemoryQueue } from '#lib/memory/memory-queue.js';
import type { LastExchange } from '#lib/memory/memory-worker.js';
import { MemoryStore } from '#lib/memory/memory-store.js';
import { LIMITS, QUEUE, SHARED_TAG } from './rig.js';
import { sortedJson } from './sorted-json.js';
import { byFirst, type KeyValue, type Snapshot, type State } from './state.js';

const RECORD_MS = 86_400_000;

/** The reference: a memory engine with a clock of its own, and its store in the form of the keys on Redis. */
export class MemoryRig {
  private now = 0;
  private readonly store = new MemoryStore({ now: () => this.now });
  readonly engine = new MemoryEngine({ store: this.store, limitsOf: () => LIMITS });

  /** Returns which keys expire. They stay expired if the clock is set back. */
  setClock(now: number): string[] {
    const before = Object.keys(this.snapshot(Infinity).state);
    this.now = now;
    const { state } = this.snapshot(Infinity);
    return before.filter((key) => !(key in state));
  }

  get isLimited(): boolean {
    return this.store.at(QUEUE).limits.isOn;
  }

  takeBell(): void {
    this.store.bells.take(QUEUE);
  }

  /** Like the claim at a doorbell of Redis: new jobs and nothing else, or null if there is more to do. */
  async claimNow(call: ExchangeCall): Promise<ClaimAnswer | null> {
    const queue = this.store.at(QUEUE);
    const worker = queue.workers.get(call.worker);
    const last = worker?.recordAt(queue.now)?.last;
    if (!worker || !last || last.seq >= call.seq || call.want < 1) return null;
    if (queue.pausedAt !== null || queue.suspects.size > 0 || queue.limits.isOn) return null;
    if (queue.wait.size + queue.prioritized.size === 0) {
      worker.note({ until: queue.now + RECORD_MS });
      return { kind: 'claimed', claimed: [], isCut: false, held: worker.held.size };
    }
    const { claimed, isCut } = claim(queue, worker, call);
    const claimedIds = claimed.map(({ id }) => id);
    const { seq, leaseMs } = call;
    worker.leaseAt = queue.now + leaseMs;
    worker.note({
      last: { seq, claimedIds, lost: [], cancelled: [] },
      leaseMs,
      until: queue.now + RECORD_MS,
    });
    queue.say(claimed.map(activated), LIMITS);
    return { kind: 'claimed', claimed: claimed.map((job) => job.claim), isCut, held: null };
  }

  /** One of the two scripts of an exchange. In a queue without limits the first does everything. */
  async exchangeStep(script: string, call: ExchangeCall): Promise<unknown> {
    const queue = this.store.at(QUEUE);
    if (script !== 'claim-limited') return exchangeOnce(queue, call, LIMITS);
    const isKnown = queue.workers.get(call.worker)?.recordAt(queue.now)?.last;
    return isKnown && queue.pausedAt === null && queue.limits.isOn ? claimOnce(queue, call, LIMITS) : null;
  }

  snapshot(afterEvent: number): Snapshot {
    const queue = this.store.at(QUEUE);
    const events = queue.events
      .after(afterEvent)
      .flatMap(({ at, events: some }) => some.map((event) => ({ ...event, at })));
    return {
      state: { ...stateOf(queue, this.store.bells.of(QUEUE)), ...this.sharedState() },
      events: events.filter(({ number }) => number > afterEvent),
    };
  }

  /** The keys of the queue without a name, which has the shared limits. */
  private sharedState(): State {
    const { bells } = this.store;
    const own = Object.entries(stateOf(this.store.at(SHARED), bells.of(SHARED)));
    return Object.fromEntries(own.map(([key, value]) => [`${SHARED_TAG}${key}`, value]));
  }
}

type Fields = readonly (readonly [string, string | number])[];

type FieldOf = (job: MemoryJob) => string | number | null | undefined | false;
const FIELDS_OF_JOBS: Readonly<Record<string, FieldOf>> = {
  jobs: ({ body }) => body,
  attempts: ({ failed, started }) => (failed > 0 || started) && failed,
  stalls: ({ stalls, isReturned }) => (stalls > 0 || isReturned) && stalls,
  failures: ({ failure, failures }) => {
    if (!failure || failures.length === 0) return failure && `${failure.at}\n${failure.json}`;
    return `${failure.at}\n{"log":${JSON.stringify(failures.toReversed())},${failure.json.slice(1)}`;
  },
  results: resultOf,
  progress: ({ progress }) => progress,
  logs: ({ logs }) =>
    logs.length > 0 && logs.map(({ attempt, text }) => `#${attempt} \u001f${text}`).join('\n'),
  priorities: ({ priority }) => priority > 0 && priority,
  toCancel: ({ cancel, cancelKeepMs }) =>
    cancel && cancelKeepMs > 0 ? `${cancel}\n${cancelKeepMs}` : cancel,
};

/** A store in the form of the keys on Redis. */
function stateOf(queue: MemoryQueue, bells: ReadonlySet<string>): State {
  const out: Record<string, KeyValue> = {};
  const put = (key: string, shape: 'hash' | 'zset', values: Fields) => {
    const sorted = values.map(([k, v]): [string, string] => [k, String(v)]);
    if (values.length > 0) out[key] = { [shape]: shape === 'hash' ? sorted.toSorted(byFirst) : sorted };
  };
  for (const [key, value] of Object.entries(FIELDS_OF_JOBS))
    put(
      key,
      'hash',
      [...queue.jobs.values()].flatMap((job): Fields => {
        const found = value(job);
        return found === null || found === undefined || found === false ? [] : [[job.id, found]];
      }),
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
  for (const [name, { until, seq, duplicates, removed }] of queue.lanes) {
    if (until <= queue.now) queue.lanes.delete(name);
    else {
      const others = removed === undefined ? [] : [`removed ${removed}`];
      out[`lane:${name}`] = {
        string: [`${seq}\n${[...duplicates.map(lineOf), ...others].join('\n')}`],
      };
    }
  }
  put(
    'unique',
    'hash',
    [...queue.keys].map(([digest, { holder, till, since, next }]) => [
      digest,
      `${holder}\n${till}\n${since}\n${next}`,
    ]),
  );
  put(
    'doorbell',
    'zset',
    [...bells].toSorted().map((bell) => [bell, 0]),
  );
  addLimits(queue, put);
  const meta: [string, number | string][] = [];
  const { made, turn, flags, heldUntil } = queue.limits as unknown as Inside;
  if (made > 0) meta.push(['lines', made]);
  if (turn > 0) meta.push(['turn', turn]);
  const till = flags.includes('b') && heldUntil < Infinity ? heldUntil : '';
  if (flags !== '') meta.push(['limited', `${flags}${till}`]);
  if (queue.events.last > 0) meta.push(['events', queue.events.last]);
  if (queue['ranks'] > 0) meta.push(['ranks', queue['ranks']]);
  if (queue.pausedAt !== null) meta.push(['paused', queue.pausedAt]);
  const { lastFull: full } = queue;
  if (full)
    meta.push(['full', `${full.at} ${full.limit} ${full.group === null ? full.onFull : `g:${full.group}`}`]);
  put('meta', 'hash', meta);
  addWorkers(queue, out, put);
  addCounters(queue, put);
  return Object.fromEntries(Object.entries(out).toSorted(byFirst));
}

function lineOf({ id, state = '-' as never, holder, replaced, size, dropped, parked }: Duplicate): string {
  if (dropped || parked) return `${dropped ? 'dropped' : 'parked'} ${id}`;
  const change = size === undefined ? (replaced ? '1' : '') : `+${size}`;
  return `${state} ${id}${holder === undefined ? '' : `\t${holder}\t${change}`}`;
}

function resultOf({ end }: MemoryJob): string | null {
  if (!end) return null;
  const { attempt, durationUs, result, cancelled } = end;
  if (cancelled !== undefined) return `${end.at}\n${JSON.stringify({ attempt, cancelled })}`;
  return `${end.at}\n${JSON.stringify({ attempt, us: durationUs, result })}`;
}

/** Places of a shared limit. */
interface Share {
  readonly queue: string;
  readonly worker: string;
  readonly till: number;
  readonly count: number;
  readonly seq: number;
  readonly granted: number;
  readonly waits: boolean;
  readonly doubt?: number;
  readonly short?: number;
}

const timeText = (letter: string, at: number | undefined) => (at === undefined ? '' : ` ${letter}${at}`);

/** The fields of the limit book that the comparison reads. */
interface Inside {
  readonly made: number;
  readonly turn: number;
  readonly flags: string;
  readonly heldUntil: number;
  readonly rules: ReadonlyMap<string, object>;
  readonly uses: ReadonlyMap<string, LimitUse>;
  readonly shares: {
    readonly shares: ReadonlyMap<string, readonly Share[]>;
    readonly waiting: ReadonlyMap<string, ReadonlySet<string>>;
  };
  readonly breakers: {
    readonly counts: ReadonlyMap<string, readonly Tenth[]>;
    readonly firsts: ReadonlyMap<string, readonly Tenth[]>;
    readonly due: ReadonlyMap<string, { readonly from: number; readonly at: number }>;
  };
  readonly lines: ReadonlyMap<string, MemoryLine>;
  readonly slots: ReadonlyMap<MemoryJob, Slot>;
}

interface Tenth {
  readonly tenth: number;
  readonly completed: number;
  readonly failed: number;
}

const tenthsText = (tenths: readonly Tenth[]) =>
  tenths.map(({ tenth, completed, failed }) => `${tenth}:${completed}:${failed}`).join(' ');

const KEPT = { '': 0, counted: 0.125, strict: 0.25, block: 0.5 };

function addLimits(queue: MemoryQueue, put: Put): void {
  const { rules, uses, lines, slots, shares, breakers } = queue.limits as unknown as Inside;
  const text = (number: number) => String(number).padStart(7, '0');
  const all = [...lines.values()];
  put(
    'grouped',
    'zset',
    queue.limits.grouped.sorted().map(({ id, score }) => [id, score]),
  );
  put(
    'limits',
    'hash',
    [...rules].map(([field, parts]) => [field, sortedJson(parts)]),
  );
  put('limitStates', 'hash', [
    ...[...uses].map(([field, { blocked, rate, mark, till }]): [string, string] => [
      field,
      `${blocked}${mark}${mark === '' ? '' : till} ${rate}`,
    ]),
    ...[...breakers.counts].map(([field, tenths]): [string, string] => [`b:${field}`, tenthsText(tenths)]),
    ...[...breakers.firsts].map(([field, tenths]): [string, string] => [`f:${field}`, tenthsText(tenths)]),
    ...[...breakers.due].map(([field, { from, at }]): [string, string] => [
      `r:${field}`,
      `${from.toFixed(3)}${at}`,
    ]),
  ]);
  put('shares', 'hash', [
    ...[...shares.shares].map(([limit, rows]): [string, string] => [
      limit,
      rows
        .map(
          ({ queue: of, worker, till, count, seq, granted, waits, ...at }) =>
            `${of} ${worker} ${till} ${count} ${seq} ${granted}${waits ? ' w' : ''}${timeText('d', at.doubt)}${timeText('s', at.short)}`,
        )
        .join('\n'),
    ]),
    ...[...shares.waiting].map(([limit, queues]): [string, string] => [
      `w:${limit}`,
      [...queues].map((of) => `${of}\n`).join(''),
    ]),
  ]);
  const subs = all.flatMap((line) =>
    [...line.jobs].map(([priority, { number }]) => ({ line, priority, number })),
  );
  put(
    'lines',
    'hash',
    subs.map(({ line, priority, number }) => [
      priority === 0 ? line.name : `${line.name}\n${priority}`,
      text(number),
    ]),
  );
  put(
    'lineStates',
    'hash',
    subs.map(({ line: { turn, jobs, name }, priority, number }) => [
      text(number),
      priority === 0 ? `${turn} ${[...jobs.keys()].toSorted((a, b) => a - b).join(',')} ${name}` : '',
    ]),
  );
  const byScore = (a: readonly [string, number], b: readonly [string, number]) =>
    a[1] - b[1] || (a[0] < b[0] ? -1 : 1);
  const scored = (of: (line: MemoryLine) => number | null) =>
    all
      .flatMap((line): [string, number][] => {
        const score = of(line);
        return score === null ? [] : [[text(line.number), score]];
      })
      .toSorted(byScore);
  put(
    'ready',
    'zset',
    scored(({ ready }) => ready),
  );
  put(
    'resting',
    'zset',
    scored(({ restsUntil }) => restsUntil),
  );
  put(
    'slots',
    'zset',
    [...slots]
      .map(([{ id }, { line, keep, isDead }]): [string, number] => [
        id,
        line ? line.number + KEPT[keep] + (isDead ? RULES.stoppedLines : 0) : 0,
      ])
      .toSorted((a, b) => a[1] - b[1] || byBytes(a[0], b[0])),
  );
}

type Put = (key: string, shape: 'hash' | 'zset', values: Fields) => void;

function addWorkers(queue: MemoryQueue, out: Record<string, KeyValue>, put: Put): void {
  put(
    'workers',
    'zset',
    queue.leased().map(({ name, leaseAt }) => [name, leaseAt]),
  );
  for (const worker of queue.workers.values()) {
    const { name, held } = worker;
    if (held.size > 0) out[`active:${name}`] = { set: [...held.keys()].toSorted() };
    const record = worker.recordAt(queue.now);
    if (!record) continue;
    const { last, pipelined, limited, limitedPipelined, leaseMs: ms, doubt } = record;
    const fields: [string, string | number][] = [];
    if (doubt) fields.push(['doubt', `${doubt.lease} ${doubt.since}`]);
    const add = (one: LastExchange | null, which: string) => {
      if (!one) return;
      const { seq, claimedIds, lost, cancelled } = one;
      fields.push(
        [`gave${which}`, claimedIds.join('\n')],
        [`lost${which}`, [lost.join('\n'), ...(cancelled.length > 0 ? ['', ...cancelled] : [])].join('\n')],
        [`seq${which}`, seq],
      );
    };
    add(last, '');
    add(pipelined, '2');
    for (const [one, which] of [
      [limited, ''],
      [limitedPipelined, '2'],
    ] as const)
      if (one) fields.push([`limited${which}`, one.claimedIds.join('\n')], [`limitedSeq${which}`, one.seq]);
    if (ms !== null) fields.push(['lease', ms]);
    put(`worker:${name}`, 'hash', fields);
  }
}

function addCounters(queue: MemoryQueue, put: Put): void {
  const sums = new Map<string, number>();
  for (const { counts } of queue.counters['days'].values())
    for (const [field, count] of counts) sums.set(field, (sums.get(field) ?? 0) + count);
  put('stats', 'hash', [...sums]);
}
