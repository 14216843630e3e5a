import { types } from 'node:util';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { type HandlerMark, showHandle } from '../../decorators/metadata.js';
import { messageOf } from '../../errors/thrown.js';
import { checkDefinition, lacksField } from '../../job/define-job.js';
import { checkJobName } from '../../job/job-id.js';
import type { LimitRule, RateRule } from '../../job/limit-rule.js';
import {
  ANY_NAME,
  byNarrowness,
  fits,
  isAmbiguous,
  isPattern,
  normalized,
  PATTERN_MARK,
} from '../../job/name-pattern.js';
import { checkBackoffName } from '../../job/backoff.js';
import { collectFaults, rule } from '../../options/check.js';
import { readBatchOptions, type CheckedBatch } from '../../options/worker-options.js';
import { BatchGatherer, type BatchMethod } from '../../worker/batches.js';
import type { ResolvedQueueOptions } from '../../options/module-options.js';
import { readHandlerPolicy, type CheckedDefaults } from '../../options/job-options.js';
import type { FindHandler, Handler, HandlerEntry } from '../../worker/handler.js';
import { JobListeners, type JobListener } from '../../worker/job-listeners.js';
import { jobListenersOf } from '../listeners/job-listener-plan.js';
import { concurrencyOf } from './concurrency.js';
import { faults } from './faults.js';
import type { FoundMethod, FoundProcessor } from './processor.explorer.js';
import { groupKey, readGroup, showGroup, type QueueGroup } from './queue-group.js';

/** A handler and the jobs it is for. */
export interface PlannedHandler extends HandlerEntry {
  /** A name, or a pattern; `*` for `@Handle()`. */
  readonly jobName: string;
  readonly isPattern: boolean;
  /** The sizes of its batches, if it takes batches. */
  readonly batch?: Pick<CheckedBatch, 'size' | 'minSize' | 'timeoutMs' | 'isByGroup'>;
}

/** Creates the function that calls a method of a processor. Handlers of batches are called through `gatherer`. */
export type MakeHandler = (
  processor: FoundProcessor,
  method: string,
  label: string,
  gatherer?: BatchGatherer,
) => Handler;

/** Options of a registered queue. Undefined for others. */
export type OptionsOf = (queue: string) => ResolvedQueueOptions | undefined;

/** The plan of one pool of this process: all processors of the same queues. */
export interface PoolPlan {
  /** How the queues take turns. Ignored if there is only one. */
  readonly order: 'strict' | 'weighted';
  readonly concurrency: number;
  /** In the order of `@Processor`. */
  readonly queues: readonly QueuePlan[];
}

/** One of its queues. */
export interface QueuePlan {
  readonly queue: string;
  /** Its weight. 1 if the order decides. */
  readonly weight: number;
  readonly handlers: readonly PlannedHandler[];
  /** Takes new handlers and listeners from a plan that was made again, after a module was loaded while the pool runs. */
  readonly add: (newer: QueuePlan) => void;
  /** The handler of that name, or of the narrowest pattern that matches it. Undefined if there is none. */
  readonly find: FindHandler;
  /** The names that have handlers. Patterns begin with `PATTERN_MARK`, and `''` stands for all other names. */
  readonly names: () => readonly string[];
  /** How many jobs a group gives at its turn: the largest size of a batch of one group, otherwise 1. */
  readonly perTurn: () => number;
  /** Methods with `@OnJob`. */
  readonly listeners: JobListeners;
}

/** Processors with the same queues, in the same order or with the same weights. */
interface Members {
  readonly group: QueueGroup;
  readonly processors: FoundProcessor[];
  readonly handlers: Map<string, PlannedHandler[]>;
  readonly listeners: JobListener[];
}

/**
 * Combines the processors of the same queues into one plan, and reports every mistake.
 *
 * @param known Names of the registered queues.
 * @param optionsOf Options of the registered queues.
 */
export async function planPools(
  processors: readonly FoundProcessor[],
  known: readonly string[],
  makeHandler: MakeHandler,
  optionsOf: OptionsOf,
): Promise<{ plans: PoolPlan[]; faults: string[] }> {
  const found: string[] = [];
  const pools = new Map<string, Members>();
  for (const processor of processors) {
    const group = readGroup(processor.className, processor.mark.queues, known, found);
    if (group === undefined) continue;
    const names = group.queues.map(({ name }) => name);
    const key = groupKey(group);
    const pool: Members = pools.get(key) ?? { group, processors: [], handlers: new Map(), listeners: [] };
    pools.set(key, pool);
    pool.processors.push(processor);
    pool.listeners.push(...jobListenersOf(processor, found));
    if (processor.methods.length === 0) found.push(faults.noHandlers(processor.className, names));
    for (const method of processor.methods) {
      for (const [queue, entry] of entriesOf(processor, method, names, makeHandler, found)) {
        found.push(...backoffFaults(entry, queue, optionsOf), ...groupFaults(entry, queue, optionsOf));
        // Without groups a batch may have jobs of several queues, each with its own limits.
        if (names.length === 1 || entry.batch?.isByGroup)
          found.push(...batchLimitFaults(entry, queue, optionsOf));
        pool.handlers.set(queue, [...(pool.handlers.get(queue) ?? []), entry]);
      }
    }
  }
  found.push(...sharedQueues([...pools.values()]));
  const plans: PoolPlan[] = [];
  for (const pool of pools.values()) {
    const queues = pool.group.queues.map(({ name }) => name);
    plans.push(
      planOf(
        pool,
        await concurrencyOf(queues, pool.processors, (queue) => optionsOf(queue)?.concurrency, found),
        found,
      ),
    );
  }
  return { plans, faults: found };
}

/** Reports a definition whose schema does not have the field that `groups.by` reads. */
function groupFaults({ label, definition }: PlannedHandler, queue: string, optionsOf: OptionsOf): string[] {
  const by = optionsOf(queue)?.limits?.groupBy;
  return definition && by && lacksField(definition, by)
    ? [faults.noGroupField(queue, by.join('.'), definition.name, label)]
    : [];
}

/** Reports batches that limits of the code keep below their `minSize`: each would wait for its timeout. */
function batchLimitFaults({ label, batch, jobName }: PlannedHandler, queue: string, optionsOf: OptionsOf) {
  const limits = optionsOf(queue)?.limits;
  if (!batch || !limits) return [];
  const { rules, shared } = limits;
  const { minSize, timeoutMs } = batch;
  const bounds: [string, LimitRule | undefined][] = [
    [`limits.{} of queue '${queue}'`, rules.get('q')],
    [`limits.names.${jobName}.{} of queue '${queue}'`, rules.get(`n:${jobName}`)],
    ...[...shared].map(([name, rule]): [string, LimitRule] => [`limits.${name}.{} of forRoot()`, rule]),
  ];
  if (batch.isByGroup) {
    const groups = `groups.{} of queue '${queue}'`;
    bounds.push([groups, rules.get('g')]);
    if (limits.isStrict) bounds.push([`groups.order 'strict' of queue '${queue}'`, { concurrency: 1 }]);
  }
  return bounds.flatMap(([place, { concurrency, rate } = {}]) => {
    const found: string[] = [];
    if (concurrency && minSize > concurrency)
      found.push(faults.batchAboveLimit(label, minSize, place.replace('{}', 'concurrency'), concurrency));
    const most = rate ? mostStarts(rate, timeoutMs) : minSize;
    if (minSize > most)
      found.push(faults.batchAboveRate(label, minSize, place.replace('{}', 'rate'), most, timeoutMs));
    return found;
  });
}

/** How many jobs a rate lets start within this time, if it lets all start that it can. */
function mostStarts({ max, per, window, burst }: RateRule, ms: number): number {
  if (window === 'bucket') return burst + Math.floor((ms * max) / per);
  const inWindows = max * (Math.floor(ms / per) + 1);
  // A fixed window begins with its first start. A time that includes this start does not reach into one window more.
  return window === 'fixed' ? inWindows + max - 1 : inWindows;
}

/** Reports queues that two pools would work on: neither pool could keep its order or its weights. */
function sharedQueues(pools: readonly Members[]): string[] {
  const names = new Set(pools.flatMap(({ group }) => group.queues.map(({ name }) => name)));
  return [...names].flatMap((queue) => {
    const claimants = pools.filter(({ group }) => group.queues.some(({ name }) => name === queue));
    if (claimants.length === 1) return [];
    const asked = claimants.flatMap(({ group, processors }) =>
      processors.map(({ className }) => ({ className, group: showGroup(group) })),
    );
    return [faults.severalPools(queue, asked)];
  });
}

/**
 * The handlers of a method. A handler for a name handles jobs of all queues of its class. A handler for a definition only handles
 * jobs of the definition's queue.
 */
function entriesOf(
  processor: FoundProcessor,
  method: FoundMethod,
  queues: readonly string[],
  makeHandler: MakeHandler,
  found: string[],
): [string, PlannedHandler][] {
  const { className } = processor;
  const label = `${className}.${method.name}`;
  if (method.marks.length === 0) return [];
  if (types.isGeneratorFunction(processor.instance[method.name])) found.push(faults.generator(label));
  found.push(...batchFaults(processor, method, label));
  const single = method.marks.some(({ batch }) => batch === undefined)
    ? makeHandler(processor, method.name, label)
    : undefined;
  const entries = (mark: HandlerMark): [string, PlannedHandler][] => {
    const place = `${showHandle(mark)} on ${label}`;
    const given = mark.definition;
    const definition = given && attempt(place, found, () => checkDefinition(given, '@Handle()'));
    if (given && !definition) return [];
    if (definition && !queues.includes(definition.queue)) {
      found.push(faults.otherQueue(label, definition.name, definition.queue, className, queues));
      return [];
    }
    const jobName =
      mark.jobName === null ? ANY_NAME : attempt(place, found, () => checkJobName(mark.jobName));
    if (jobName === undefined) return [];
    const isByPattern = definition === undefined && isPattern(jobName);
    const policy = policyOf(mark, `${label}: ${showHandle(mark)}`, found);
    const batch = batchOf(mark, processor, method.name, label, found);
    if (mark.batch !== undefined && !batch) return [];
    const entry = {
      jobName: isByPattern ? normalized(jobName) : jobName,
      isPattern: isByPattern,
      label,
      ...(batch
        ? {
            run: makeHandler(processor, method.name, label, batch.gatherer),
            batch: batch.options,
            flush: () => batch.gatherer.flush(),
          }
        : { run: single! }),
      ...(definition && { definition }),
      ...(policy && { policy }),
    };
    return (definition ? [definition.queue] : queues).map((queue) => [queue, entry]);
  };
  return method.marks.flatMap(entries);
}

/** The object that collects the jobs of a `@HandleBatch`. Undefined for other handlers, and if the options are wrong. */
function batchOf(
  mark: HandlerMark,
  { instance }: FoundProcessor,
  method: string,
  label: string,
  found: string[],
): { readonly options: CheckedBatch; readonly gatherer: BatchGatherer } | undefined {
  if (mark.batch === undefined) return undefined;
  const { value, faults: wrong } = collectFaults((report) =>
    readBatchOptions(mark.batch, `${label}: ${showHandle(mark)}`, report),
  );
  found.push(...wrong);
  if (value === undefined) return undefined;
  // Looked up at each call, so that a test can replace it on the instance.
  const call: BatchMethod = (jobs, batch) => instance[method](jobs, batch);
  return { options: value, gatherer: new BatchGatherer(value, label, call) };
}

function batchFaults({ className, isScoped, instance }: FoundProcessor, method: FoundMethod, label: string) {
  const mark = method.marks.find(({ batch }) => batch !== undefined);
  if (!mark) return [];
  const params = Reflect.getMetadata(ROUTE_ARGS_METADATA, instance.constructor, method.name) ?? {};
  return [
    ...(isScoped ? [faults.batchScope(`${showHandle(mark)} of ${label}`, className)] : []),
    ...(method.marks.some(({ batch }) => batch === undefined) ? [faults.batchAndHandle(label)] : []),
    ...Object.values<{ index: number }>(params).map(({ index }) => faults.batchParameter(label, index)),
  ];
}

function policyOf({ policy }: HandlerMark, path: string, found: string[]): CheckedDefaults | undefined {
  if (policy === undefined) return undefined;
  const checked = collectFaults((report) => readHandlerPolicy(policy, path, report));
  found.push(...checked.faults);
  return checked.value;
}

/** Reports backoffs by name that the queue does not have. */
function backoffFaults(
  { policy, label, jobName }: PlannedHandler,
  queue: string,
  optionsOf: OptionsOf,
): readonly string[] {
  const options = optionsOf(queue);
  if (policy?.backoff === undefined || options === undefined) return [];
  const check = rule((_, path) => checkBackoffName(policy.backoff, options.backoffs, path));
  return collectFaults((report) => check(undefined, `${label}: @Handle('${jobName}').backoff`, report))
    .faults;
}

function planOf(pool: Members, concurrency: number, found: string[]): PoolPlan {
  const { group, processors } = pool;
  const queues = group.queues.map(({ name, weight }) => {
    const handlers = pool.handlers.get(name) ?? [];
    for (const { label, batch } of handlers)
      if (batch && batch.size > concurrency) found.push(faults.batchTooLarge(label, batch.size, concurrency));
    // A processor without handlers has been reported already.
    if (handlers.length === 0 && (pool.handlers.size > 0 || pool.listeners.length > 0)) {
      found.push(
        faults.noHandlerFor(
          name,
          processors.map(({ className }) => className),
        ),
      );
    }
    return queuePlan({ queue: name, weight, handlers }, pool.listeners, found);
  });
  return { order: group.order, concurrency, queues };
}

/** Creates the plan of one queue. Mistakes are added to `found`. */
export function queuePlan(
  { queue, weight, handlers }: Pick<QueuePlan, 'queue' | 'weight' | 'handlers'>,
  jobListeners: readonly JobListener[],
  found: string[],
): QueuePlan {
  const finder = new HandlerFinder(handlers);
  const listeners = new JobListeners(queue, jobListeners);
  for (const [key, entries] of grouped(handlers)) {
    if (entries.length === 1) continue;
    const places = entries.map((entry) => entry.label);
    found.push(
      key === PATTERN_MARK + ANY_NAME
        ? faults.duplicateCatchAll(queue, places)
        : faults.duplicateHandler(queue, entries[0]!.jobName, places),
    );
  }
  found.push(...finder.ambiguous().map(([a, b]) => faults.ambiguousPatterns(queue, a, b)));
  return {
    queue,
    weight,
    handlers,
    add: (newer) => {
      finder.add(newer.handlers);
      listeners.replace(newer.listeners.all);
    },
    find: (jobName) => finder.find(jobName),
    names: () => finder.names(),
    perTurn: () => finder.perTurn,
    listeners,
  };
}

/** Most names whose handler was found by pattern that are remembered. When it is reached, all are forgotten. */
const MAX_REMEMBERED = 1_000;

/** Finds the handlers of one queue with one map lookup. A name that needs a pattern is searched the first time. */
class HandlerFinder {
  private readonly named = new Map<string, PlannedHandler>();
  private patterns: PlannedHandler[] = [];
  /** Handlers of names that matched a pattern. */
  private readonly remembered = new Map<string, PlannedHandler>();
  perTurn = 1;

  constructor(handlers: readonly PlannedHandler[]) {
    this.add(handlers);
  }

  /** Handlers that exist stay, since they may be collecting a batch. */
  add(handlers: readonly PlannedHandler[]): void {
    const all = new Map([...handlers, ...this.patterns].map((entry) => [keyOf(entry), entry]));
    for (const entry of all.values())
      if (!entry.isPattern && !this.named.has(entry.jobName)) this.named.set(entry.jobName, entry);
    this.patterns = [...all.values()]
      .filter((entry) => entry.isPattern)
      .toSorted((a, b) => byNarrowness(a.jobName, b.jobName));
    this.remembered.clear();
    const sizes = [...this.named.values(), ...this.patterns].map(({ batch }) =>
      batch?.isByGroup ? batch.size : 1,
    );
    this.perTurn = Math.max(1, ...sizes);
  }

  find(name: string): PlannedHandler | undefined {
    return this.named.get(name) ?? this.remembered.get(name) ?? this.findByPattern(name);
  }

  names(): readonly string[] {
    const patterns = this.patterns.map(({ jobName }) => jobName);
    const marked = patterns.map((pattern) => (pattern === ANY_NAME ? '' : PATTERN_MARK + pattern));
    if (patterns.some((pattern) => pattern !== ANY_NAME)) marked.push(PATTERN_MARK);
    // Includes names that matched a pattern: processes of an older version do not support patterns.
    return [...this.named.keys(), ...this.remembered.keys(), ...marked];
  }

  ambiguous(): [PlannedHandler, PlannedHandler][] {
    return this.patterns.flatMap((a, i) =>
      this.patterns
        .slice(i + 1)
        .filter((b) => isAmbiguous(a.jobName, b.jobName))
        .map((b): [PlannedHandler, PlannedHandler] => [a, b]),
    );
  }

  private findByPattern(name: string): PlannedHandler | undefined {
    const entry = this.patterns.find(({ jobName }) => fits(jobName, name));
    if (entry === undefined || entry.jobName === ANY_NAME) return entry;
    if (this.remembered.size >= MAX_REMEMBERED) this.remembered.clear();
    this.remembered.set(name, entry);
    return entry;
  }
}

/** `Map.groupBy` needs Node 21. */
function grouped(handlers: readonly PlannedHandler[]): Map<string, PlannedHandler[]> {
  const groups = new Map<string, PlannedHandler[]>();
  for (const entry of handlers) groups.set(keyOf(entry), [...(groups.get(keyOf(entry)) ?? []), entry]);
  return groups;
}

function keyOf({ jobName, isPattern: isByPattern }: PlannedHandler): string {
  return isByPattern ? PATTERN_MARK + jobName : jobName;
}

/** The result of a check. If it throws, undefined, and the mistake is added to `found`. */
function attempt<T>(place: string, found: string[], check: () => T): T | undefined {
  try {
    return check();
  } catch (error) {
    found.push(faults.argument(place, messageOf(error)));
    return undefined;
  }
}
