import type { QueueEngine } from '../../contract/engine.js';
import { isPassing } from '../../contract/retry.js';
import { worksOn } from '../../contract/process-verbs.js';
import { countedBetween, countedDays, type NameStats } from '../../contract/stats.js';
import { fullPlaces } from '../../inspect/full.js';
import {
  scheduleLag,
  type LimitsOfQueue,
  type QueueInfo,
  type QueueInspector,
  type WorkerInfo,
} from '../../inspect/queue-inspector.js';
import { servingOf, silentWorkers } from '../../inspect/serving.js';
import type { AlertState, Counted, Reading } from './alert-state.js';
import type { AlertRuleKind, CheckedRule } from './rules.js';

/** Where the values of the queues are read from. */
export interface AlertSource {
  readonly engine: Pick<QueueEngine, 'admin' | 'limits' | 'processes' | 'schedules' | 'overdue' | 'now'>;
  readonly inspector: Pick<QueueInspector, 'readableQueues' | 'workers' | 'limitsOf' | 'sharedLimits'>;
}

const POINTS = 60;

/** The values of the rules, and the counters from which the next ones are computed. */
interface Measured {
  readonly readings: readonly Reading[];
  readonly counters: AlertState['counters'];
  /** The errors of queues that could not be read. */
  readonly faults: ReadonlyMap<string, Error>;
}

/** Reads the values that the rules need, once for all of them. */
export async function measure(
  source: AlertSource,
  rules: readonly CheckedRule[],
  before: AlertState['counters'],
): Promise<Measured> {
  const { engine, inspector } = source;
  const uses = (...kinds: readonly AlertRuleKind[]) => rules.some(({ rule }) => kinds.includes(rule));
  const isForQueues = rules.some(({ rule }) => rule !== 'memory');
  const [found, workers] = await Promise.all([
    isForQueues ? inspector.readableQueues() : { queues: [], faults: [] },
    uses('noWorkers', 'longestRun') ? inspector.workers() : [],
  ]);
  const [first] = found.queues;
  const shared = uses('breakerOpen') && first ? inspector.sharedLimits(first.name) : undefined;
  // Each queue with such a rule reports the error.
  shared?.catch(() => undefined);
  const faults = new Map(found.faults);
  const counters: Record<string, readonly Counted[]> = {};
  const readings: Reading[] = [];
  for (const queue of found.queues) {
    const own = rules.filter((rule) => isFor(rule, queue.name));
    if (own.length === 0) continue;
    try {
      // oxlint-disable-next-line no-await-in-loop -- one queue after another, to spread the load
      const more = await factsOf(source, queue, own, before[queue.name] ?? [], shared);
      if (more.counters.length > 0) counters[queue.name] = more.counters;
      const facts = { queue, workers, now: engine.now(), ...more };
      readings.push(...own.map((rule) => ({ rule, queue: queue.name, value: valueOf(rule, facts) })));
    } catch (error) {
      if (isPassing(error)) throw error;
      faults.set(queue.name, error as Error);
    }
  }
  for (const rule of rules.filter(({ rule: kind }) => kind === 'memory'))
    // oxlint-disable-next-line no-await-in-loop -- there is one such rule, or two
    readings.push({ rule, queue: null, value: await memoryOf(engine) });
  return { readings, counters: { ...kept(before, faults), ...counters }, faults };
}

/** Readings that only some rules need. */
async function factsOf(
  { engine, inspector }: AlertSource,
  info: QueueInfo,
  rules: readonly CheckedRule[],
  before: readonly Counted[],
  sharedLimits: Promise<LimitsOfQueue> | undefined,
): Promise<Pick<Facts, 'silent' | 'lag' | 'counters' | 'isBreakerOpen' | 'isFull' | 'stoppedGroups'>> {
  const queue = info.name;
  const needs = (...kinds: readonly AlertRuleKind[]) => rules.some(({ rule }) => kinds.includes(rule));
  const [counted, silent, lag, full, limits, shared] = await Promise.all([
    needs('failureRatio', 'deadRate') ? countersOf(engine, queue) : undefined,
    needs('stalled') ? silentWorkers(engine, queue) : [],
    needs('scheduleLag') ? scheduleLag(engine.schedules, queue) : 0,
    needs('full') ? fullPlaces(engine, info) : [],
    needs('breakerOpen', 'stoppedGroups') ? inspector.limitsOf(queue) : undefined,
    needs('breakerOpen') ? sharedLimits : undefined,
  ]);
  return {
    silent: silent.length,
    lag,
    counters: counted ? withNow(before, counted, rules) : [],
    isFull: full.some(({ isNow }) => isNow),
    stoppedGroups: limits?.groups.stopped ?? 0,
    isBreakerOpen: isBreakerOpen([
      ...(limits?.limits ?? []),
      ...(shared?.limits.filter(({ users }) => users.includes(queue)) ?? []),
    ]),
  };
}

function isBreakerOpen(limits: LimitsOfQueue['limits']): boolean {
  return limits.some(({ breaker }) => breaker !== null && breaker !== 'closed');
}

/** The counters of queues that could not be read now. */
function kept(before: AlertState['counters'], faults: ReadonlyMap<string, Error>): AlertState['counters'] {
  return Object.fromEntries(Object.entries(before).filter(([queue]) => faults.has(queue)));
}

function isFor({ rule, queues }: CheckedRule, queue: string): boolean {
  return rule !== 'memory' && (queues?.includes(queue) ?? true);
}

interface Facts {
  readonly queue: QueueInfo;
  readonly workers: readonly WorkerInfo[];
  readonly silent: number;
  readonly lag: number;
  readonly isBreakerOpen: boolean;
  readonly isFull: boolean;
  readonly stoppedGroups: number;
  readonly counters: readonly Counted[];
  readonly now: number;
}

function valueOf(rule: CheckedRule, facts: Facts): number {
  const { queue, workers, silent, lag, counters, now } = facts;
  const { counts, oldestWaitingMs, paused, name } = queue;
  switch (rule.rule) {
    case 'backlog':
      return counts.waiting;
    case 'oldestWaiting':
      return oldestWaitingMs ?? 0;
    case 'dead':
      return counts.dead;
    case 'deadRate':
      return changeOf(counters, rule.windowMs).dead;
    case 'failureRatio': {
      const { processed, failed } = changeOf(counters, rule.windowMs);
      const attempts = processed + failed;
      return attempts < rule.min ? 0 : failed / attempts;
    }
    case 'noWorkers': {
      const { processes, paused: pausing } = servingOf(
        workers.filter(({ state }) => state !== 'draining'),
        name,
      );
      // A process that is paused or stops still ends its running jobs.
      const isServed = workers.some((worker) => worksOn(worker, name));
      return (counts.waiting > 0 && processes === pausing) || (counts.active > 0 && !isServed) ? 1 : 0;
    }
    case 'stalled':
      return silent;
    case 'paused':
      return Number(paused);
    case 'breakerOpen':
      return Number(facts.isBreakerOpen);
    case 'full':
      return Number(facts.isFull);
    case 'stoppedGroups':
      return facts.stoppedGroups;
    case 'scheduleLag':
      return lag;
    case 'longestRun': {
      const starts = workers.flatMap(({ pools }) =>
        pools.flatMap(({ jobs }) =>
          jobs.filter((job) => job.queue === name).map(({ since }) => since.getTime()),
        ),
      );
      return starts.length === 0 ? 0 : Math.max(0, Math.floor(now) - Math.min(...starts));
    }
    case 'memory':
      return 0;
  }
}

async function countersOf(engine: AlertSource['engine'], queue: string): Promise<Counted> {
  const days = countedDays(await engine.admin.stats(queue, 2));
  return { at: Math.floor(engine.now()), days };
}

/** The stored points of the longest window, and one point before it. */
function withNow(before: readonly Counted[], counted: Counted, rules: readonly CheckedRule[]): Counted[] {
  const windowMs = Math.max(...rules.map((rule) => rule.windowMs));
  // If the clock of Redis was set back, some points are later than now.
  const past = before.filter(({ at }) => at <= counted.at);
  const last = past.at(-1);
  // Counting starts again after the queue was deleted, and after an earlier version, whose points have no days.
  const kept = last?.days && countedBetween(last.days, counted.days) ? past : [];
  const first = kept.findLastIndex(({ at }) => at <= counted.at - windowMs);
  const left = kept.slice(Math.max(0, first));
  // Limits the number of stored points of a window.
  const [beforeLast, newest] = [left.at(-2), left.at(-1)];
  if (beforeLast && newest!.at - beforeLast.at < windowMs / POINTS) left.pop();
  return [...left, counted];
}

function changeOf(counters: readonly Counted[], windowMs: number): NameStats {
  const last = counters.at(-1);
  const first = last && (counters.findLast(({ at }) => at <= last.at - windowMs) ?? counters[0]);
  const change = first ? countedBetween(first.days, last.days) : null;
  return change ?? { processed: 0, failed: 0, dead: 0 };
}

/** The used part of `maxmemory`. 0 without `maxmemory`, and with the memory engine. */
async function memoryOf({ admin }: AlertSource['engine']): Promise<number> {
  const info = (await admin.serverInfo('godwit-alerts')) ?? '';
  const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const most = field('maxmemory');
  return most === 0 ? 0 : field('used_memory') / most;
}
