import type { QueueEngine } from '../../contract/engine.js';
import { worksOn } from '../../contract/process-verbs.js';
import { countedBetween, countedDays, type NameStats } from '../../contract/stats.js';
import {
  scheduleLag,
  type QueueInfo,
  type QueueInspector,
  type WorkerInfo,
} from '../../inspect/queue-inspector.js';
import type { AlertState, Counted, Reading } from './alert-state.js';
import type { AlertRuleKind, CheckedRule } from './rules.js';

/** Where the values of the queues are read from. */
export interface AlertSource {
  readonly engine: Pick<QueueEngine, 'admin' | 'processes' | 'schedules' | 'overdue' | 'now'>;
  readonly inspector: Pick<QueueInspector, 'queues' | 'workers'>;
}

const POINTS = 60;

/** Reads the values that the rules need, once for all of them. */
export async function measure(
  { engine, inspector }: AlertSource,
  rules: readonly CheckedRule[],
  before: AlertState['counters'],
): Promise<{ readings: Reading[]; counters: AlertState['counters'] }> {
  const uses = (...kinds: readonly AlertRuleKind[]) => rules.some(({ rule }) => kinds.includes(rule));
  const isForQueues = rules.some(({ rule }) => rule !== 'memory');
  const [all, workers] = await Promise.all([
    isForQueues ? inspector.queues() : [],
    uses('noWorkers', 'longestRun') ? inspector.workers() : [],
  ]);
  const queues = all.filter(({ name }) => rules.some((rule) => isFor(rule, name)));
  const counters: Record<string, readonly Counted[]> = {};
  const readings: Reading[] = [];
  for (const queue of queues) {
    const own = rules.filter((rule) => rule.rule !== 'memory' && isFor(rule, queue.name));
    const needs = (...kinds: readonly AlertRuleKind[]) => own.some(({ rule }) => kinds.includes(rule));
    // oxlint-disable-next-line no-await-in-loop -- one queue after another, to spread the load
    const [counted, silent, lag] = await Promise.all([
      needs('failureRatio', 'deadRate') ? countersOf(engine, queue.name) : undefined,
      needs('stalled') ? engine.overdue(queue.name, 0) : [],
      needs('scheduleLag') ? scheduleLag(engine.schedules, queue.name) : 0,
    ]);
    if (counted) counters[queue.name] = withNow(before[queue.name] ?? [], counted, own);
    const facts = {
      queue,
      workers,
      silent: silent.length,
      lag,
      counters: counters[queue.name] ?? [],
      now: engine.now(),
    };
    readings.push(...own.map((rule) => ({ rule, queue: queue.name, value: valueOf(rule, facts) })));
  }
  for (const rule of rules.filter(({ rule: kind }) => kind === 'memory'))
    // oxlint-disable-next-line no-await-in-loop -- there is one such rule, or two
    readings.push({ rule, queue: null, value: await memoryOf(engine) });
  return { readings, counters };
}

function isFor({ rule, queues }: CheckedRule, queue: string): boolean {
  return rule !== 'memory' && (queues?.includes(queue) ?? true);
}

interface Facts {
  readonly queue: QueueInfo;
  readonly workers: readonly WorkerInfo[];
  readonly silent: number;
  readonly lag: number;
  readonly counters: readonly Counted[];
  readonly now: number;
}

function valueOf(rule: CheckedRule, { queue, workers, silent, lag, counters, now }: Facts): number {
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
      const isServed = workers.some((worker) => worksOn(worker, name));
      return !isServed && counts.waiting + counts.active > 0 ? 1 : 0;
    }
    case 'stalled':
      return silent;
    case 'paused':
      return Number(paused);
    case 'scheduleLag':
      return lag;
    case 'longestRun': {
      const starts = workers.flatMap(({ pools }) =>
        pools.flatMap(({ jobs }) =>
          jobs.filter((job) => job.queue === name).map(({ since }) => since.getTime()),
        ),
      );
      return starts.length === 0 ? 0 : Math.max(0, now - Math.min(...starts));
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
  const last = before.at(-1);
  // Counting starts again after the queue was deleted, and after an earlier version, whose points have no days.
  const kept = last?.days && countedBetween(last.days, counted.days) ? before : [];
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
