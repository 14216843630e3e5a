import type { BulkAct } from '../../contract/bulk-act-verbs.js';
import { isBlocked } from '../../contract/process-verbs.js';
import type { QueueEngine } from '../../contract/engine.js';
import { counted, listed, quoted, whose } from '../../job/text.js';
import type {
  LimitsOfQueue,
  QueueInspector,
  SilentWorkerInfo,
  WorkerInfo,
} from '../../inspect/queue-inspector.js';
import { fullText, type FullPlace } from '../../inspect/full.js';
import { pausedSchedules, unhandledNames, unhandledText, type UnhandledName } from '../../inspect/serving.js';
import { stoppedText, type StoppedGroups } from '../../inspect/stopped.js';
import { usersOf } from '../../producer/limit-info.js';
import { span } from './time-text.js';
import type { Attention, QueueView } from './views.js';

const LATE_MS = 60_000;

/** Without the seconds of longer times, which would change the text at each look. */
function timeOf(ms: number): string {
  return span(ms < 60_000 ? ms : ms - (ms % 60_000)).replaceAll('\u00a0', ' ');
}

/** How long facts about a queue are used again that take more than a short call. An open page asks every three seconds. */
const SLOW_FOR_MS = 15_000;
/** Schedules that are read, for each queue. */
const MOST_SCHEDULES = 200;
/** Queues whose facts are kept. */
const MOST_QUEUES = 10_000;

/** Facts about a queue that take longer to read. */
interface SlowFacts {
  readonly unhandled: readonly UnhandledName[];
  /** Ids of the first schedules that are paused. */
  readonly pausedSchedules: readonly string[];
  /** Why its Redis refuses writes; null if it does not. */
  readonly refused: string | null;
}

/** Reads the slow facts of a queue at most every 15 seconds, however many people look at the overview. */
export class SlowReader {
  private readonly known = new Map<string, { readonly at: number; readonly facts: Promise<SlowFacts> }>();

  constructor(
    private readonly engine: Pick<QueueEngine, 'admin' | 'schedules' | 'now'>,
    private readonly inspector: Pick<QueueInspector, 'refusedWrites'>,
  ) {}

  of(queue: string): Promise<SlowFacts> {
    const now = performance.now();
    const last = this.known.get(queue);
    if (last && now - last.at < SLOW_FOR_MS) return last.facts;
    const facts = this.read(queue);
    if (this.known.size >= MOST_QUEUES) this.known.clear();
    this.known.set(queue, { at: now, facts });
    // An error is not used again.
    facts.catch(() => this.known.delete(queue));
    return facts;
  }

  private async read(queue: string): Promise<SlowFacts> {
    const [unhandled, paused, [refused]] = await Promise.all([
      unhandledNames(this.engine, queue),
      pausedSchedules(this.engine, queue, MOST_SCHEDULES),
      this.inspector.refusedWrites([queue]),
    ]);
    return { unhandled, pausedSchedules: paused, refused: refused?.text ?? null };
  }
}

/** What is known about one queue. */
export interface QueueFacts {
  readonly view: QueueView;
  /** Workers that went silent. */
  readonly silent: number;
  readonly late: readonly { readonly id: string; readonly lateMs: number }[];
  readonly slow: SlowFacts;
  readonly full: readonly FullPlace[];
  /** Groups that dead jobs stop; null without dead jobs. */
  readonly stopped: StoppedGroups | null;
}

/** Problems that need attention, the worst first. */
export function attentionOf(
  queues: readonly QueueFacts[],
  {
    workers,
    silent,
    acts = [],
  }: {
    readonly workers: readonly WorkerInfo[];
    readonly silent: readonly SilentWorkerInfo[];
    readonly acts?: readonly BulkAct[];
  },
  limits: readonly LimitsOfQueue[],
  warnings: readonly { readonly message: string }[],
  maxOldestMs: number,
): Attention[] {
  const found: Attention[] = warnings.map(({ message }) => ({ level: 'bad', text: message, page: 'redis' }));
  // Most queues are on the same Redis.
  for (const refused of new Set(queues.map(({ slow }) => slow.refused)))
    if (refused !== null)
      found.push({ level: 'bad', page: 'queues', text: `${refused}. No job can be added or end.` });
  // Before the old and dead jobs that they explain.
  found.push(...queues.flatMap(stopped));
  found.push(...queues.flatMap(({ view }) => [...waitingIn(view, maxOldestMs), ...deadIn(view)]));
  found.push(...queues.flatMap(full));
  found.push(...queues.flatMap(gone), ...queues.flatMap(scheduled), ...queues.flatMap(unhandled));
  const names = new Set(queues.map(({ view }) => view.name));
  found.push(...limits.flatMap((one) => stoppedBy(one, names)));
  found.push(...acts.filter(({ queue }) => names.has(queue)).flatMap(interrupted));
  const seen = workers.filter((worker) => worksOnAny(worker, names));
  for (const { host, pid, blockedMs } of seen.filter(isBlocked))
    found.push({
      level: 'warn',
      page: 'workers',
      text: `The event loop of ${host} · ${pid} was blocked for ${timeOf(blockedMs)} in the last minute.`,
    });
  for (const { host, pid, silentMs } of silent.filter((worker) => worksOnAny(worker, names)))
    found.push({
      level: 'warn',
      page: 'workers',
      text: `${host} · ${pid} has been silent for ${timeOf(silentMs)}: it was killed, hangs, or does not reach Redis.`,
    });
  const versions = [...new Set(seen.map(({ versions }) => versions.godwit))];
  if (versions.length > 1)
    found.push({
      level: 'warn',
      page: 'workers',
      text: `Processes run different versions of Godwit: ${versions.join(', ')}.`,
    });
  return found.toSorted((a, b) => Number(a.level === 'warn') - Number(b.level === 'warn'));
}

interface QueuesOfProcess {
  readonly pools: readonly { readonly queues: readonly string[] }[];
  readonly moreQueues?: readonly string[];
}

/** The queues that a process works on. */
export function queuesOf({ pools, moreQueues = [] }: QueuesOfProcess): string[] {
  return [...pools.flatMap((pool) => pool.queues), ...moreQueues];
}

/** Whether a process works on one of these queues. */
export function worksOnAny(worker: QueuesOfProcess, names: ReadonlySet<string>): boolean {
  return queuesOf(worker).some((name) => names.has(name));
}

function deadIn({ name, counts, today }: QueueView): Attention[] {
  const place = { queue: name, page: 'dead' } as const;
  if (today.dead > 0)
    return [
      {
        level: counts.dead > 0 ? 'bad' : 'warn',
        ...place,
        text: `${counted(today.dead, 'job')} died today; ${counts.dead.toLocaleString('en')} dead in all.`,
      },
    ];
  if (counts.dead === 0) return [];
  return [{ level: 'warn', ...place, text: `${counted(counts.dead, 'dead job')} from earlier days.` }];
}

function stopped({ view, stopped: found }: QueueFacts): Attention[] {
  if (!found || found.groups.length === 0) return [];
  const text = stoppedText(found);
  const sentence = `${text[0]!.toUpperCase()}${text.slice(1)}. Retry or remove these jobs.`;
  return [{ level: 'bad', queue: view.name, page: 'queue', text: sentence }];
}

function full({ view, full: places }: QueueFacts): Attention[] {
  const place = { queue: view.name, page: 'queue' } as const;
  return places.map((one) => ({
    level: one.isNow ? 'bad' : 'warn',
    ...place,
    text: `${one.group === null ? 'It' : `Group ${quoted(one.group)}`} ${fullText(one, timeOf)}.`,
  }));
}

function gone({ view, silent }: QueueFacts): Attention[] {
  if (silent === 0) return [];
  const text = `${counted(silent, 'worker')} went silent, and nobody has taken back the jobs. Start a process that works on it.`;
  return [{ level: 'bad', queue: view.name, page: 'workers', text }];
}

function interrupted({ queue, kind, state, examined, total }: BulkAct): Attention[] {
  if (state !== 'interrupted') return [];
  const part = `${examined.toLocaleString('en')} of ${counted(total, 'job')}`;
  const text = `An act on many jobs (${kind}) was interrupted after ${part}. Continue or stop it.`;
  return [{ level: 'warn', queue, page: 'jobs', text }];
}

function scheduled({ view, late, slow }: QueueFacts): Attention[] {
  const place = { level: 'warn', queue: view.name, page: 'schedules' } as const;
  const [first, ...more] = slow.pausedSchedules;
  return [
    ...late
      .filter(({ lateMs }) => lateMs > LATE_MS)
      .map(({ id, lateMs }) => ({ ...place, text: `Schedule ${quoted(id)} is ${timeOf(lateMs)} late.` })),
    ...(first === undefined ? [] : [{ ...place, text: pausedText(first, more.length) }]),
  ];
}

function pausedText(id: string, more: number): string {
  if (more === 0) return `Schedule ${quoted(id)} is paused.`;
  return `Schedule ${quoted(id)} and ${counted(more, 'other')} are paused.`;
}

/** Jobs whose name no process handles. */
function unhandled({ view, slow }: QueueFacts): Attention[] {
  return slow.unhandled.map((one) => ({
    level: 'warn',
    queue: view.name,
    page: 'delayed',
    text: `${unhandledText(one)}.`,
  }));
}

/** Why jobs of a queue wait for long, if a person can do something about it. */
function waitingIn(queue: QueueView, maxOldestMs: number): Attention[] {
  const { name, counts, paused, pausedPlace, oldestWaitingMs, consumers } = queue;
  const waiting = counted(counts.waiting, 'waiting job');
  const lost = `${counted(counts.active, 'running job')}, whose process is gone`;
  const found: Attention[] = [];
  const isBad = (page: Attention['page'], text: string) =>
    found.push({ level: 'bad', queue: name, page, text });
  if (consumers === 0 && counts.waiting + counts.active > 0)
    isBad('workers', `No process works on it, and it has ${counts.waiting > 0 ? waiting : lost}.`);
  else if (!paused && pausedPlace !== null && counts.waiting > 0)
    isBad('workers', `It is paused in ${pausedPlace}, and has ${waiting}.`);
  else if (!paused && oldestWaitingMs !== null && oldestWaitingMs > maxOldestMs)
    isBad('queue', `The oldest of ${waiting} has waited for ${timeOf(oldestWaitingMs)}.`);
  if (paused)
    found.push({
      level: 'warn',
      queue: name,
      page: 'queue',
      text: counts.waiting > 0 ? `It is paused, and has ${waiting}.` : 'It is paused.',
    });
  return found;
}

/** The limits of a queue that let nothing start: an open circuit breaker, or a hold. */
function stoppedBy({ queue, limits }: LimitsOfQueue, visible: ReadonlySet<string>): Attention[] {
  return limits.flatMap((limit) => {
    const { field, breaker, blockedForMs } = limit;
    const queues = usersOf(limit).filter((name) => visible.has(name));
    // The page of a queue shows the shared limits that it uses, and can release them.
    const [at = queue] = queues;
    const place = at === '' ? { page: 'queues' as const } : { queue: at, page: 'queue' as const };
    const by = queues.length > 0 ? ` (used by ${listed(queues)})` : '';
    const of = `${whose(field)}${by}`;
    const isOpen = breaker !== null && breaker !== 'closed';
    if (!isOpen && blockedForMs === 0) return [];
    const text = isOpen
      ? `The circuit breaker of ${of} is ${breaker}, because too many runs failed.`
      : `No job of ${of} starts for ${timeOf(blockedForMs)} more: it is held.`;
    return [{ level: 'warn' as const, ...place, text }];
  });
}
