import { inTime } from '../../contract/retry.js';
import { escaped } from '../../errors/show.js';
import { counted } from '../../job/text.js';
import { Injectable } from '@nestjs/common';
import { HealthIndicatorService, type HealthIndicatorResult } from '@nestjs/terminus';
import { UnknownQueueError, InvalidOptionError } from '../../errors.js';
import { messageOf } from '../../errors/thrown.js';
import { QueueInspector, type QueueInfo, type RefusedWrites } from '../../inspect/queue-inspector.js';
import type { JobCounts } from '../../job/job-state.js';
import { QueueRuntime } from '../../module/queue.runtime.js';
import { MAX_TIMER_MS, type Duration } from '../../job/duration.js';
import { boolean, duration, field, integer, oneOrSeveral, refuse, rule, shape } from '../../options/check.js';

/** Limits for each queue. */
export interface QueueHealthLimits {
  /** Maximum number of waiting jobs. @default no limit */
  readonly maxWaiting?: number;
  /** How long the oldest waiting job may have waited since it was first due. @default no limit */
  readonly maxOldest?: Duration;
}

/** `QueueHealthIndicator.check(key, options)`. A queue beyond `maxWaiting` or `maxOldest` is `down`. */
export interface QueueHealthOptions extends QueueHealthLimits {
  /** Name of a queue, or of several. @default all registered queues */
  readonly queues?: string | readonly string[];
  /** How long Redis may take to answer, 1 ms to 24 days. @default '1s' */
  readonly timeout?: Duration;
  /** Whether the workers that this process has for these queues must be running. @default true */
  readonly workers?: boolean;
  /** Lower limits; a queue beyond them is `degraded`. @default none */
  readonly degraded?: QueueHealthLimits;
}

/** In ms; absent limits do not apply. */
interface CheckedLimits {
  readonly maxWaiting?: number;
  readonly maxOldestMs?: number;
}

/** `QueueHealthOptions` with its defaults. */
interface CheckedHealthOptions {
  /** Undefined means all queues. */
  readonly queues?: readonly string[];
  readonly timeoutMs: number;
  readonly workers: boolean;
  readonly down: CheckedLimits;
  readonly degraded: CheckedLimits;
}

const LIMITS = {
  maxWaiting: field('maxWaiting', integer(0, Number.MAX_SAFE_INTEGER)),
  maxOldest: field('maxOldestMs', duration()),
} as const;

const readOptions = shape({
  ...LIMITS,
  queues: field('queues', rule(readQueues)),
  timeout: field('timeoutMs', duration(1, MAX_TIMER_MS)),
  workers: field('workers', boolean),
  degraded: field('degraded', shape(LIMITS)),
});

/** @throws {InvalidOptionError} */
function checkHealthOptions(options: QueueHealthOptions): CheckedHealthOptions {
  const path = 'QueueHealthIndicator.check()';
  const {
    queues,
    timeoutMs = 1_000,
    workers = true,
    degraded = {},
    ...down
  } = readOptions(options, path, refuse)!;
  refuseHigher(`${path}.degraded.maxWaiting`, degraded.maxWaiting, down.maxWaiting);
  refuseHigher(`${path}.degraded.maxOldest`, degraded.maxOldestMs, down.maxOldestMs);
  return { queues, timeoutMs, workers, down, degraded };
}

/** The limits of `degraded` must be below those of `down`. */
function refuseHigher(path: string, degraded: number | undefined, down: number | undefined): void {
  if (degraded === undefined || down === undefined || degraded < down) return;
  const field = path.slice(path.lastIndexOf('.') + 1);
  throw new InvalidOptionError(path, `lower than ${field}, beyond which it is down (${down})`, degraded);
}

/** Checks only the form of the names; whether they are registered is checked by the indicator. */
function readQueues(value: unknown, path: string): readonly string[] {
  const names = oneOrSeveral(value, path);
  if (names.length > 0 && names.every((name) => typeof name === 'string')) return names;
  throw new InvalidOptionError(path, 'the name of a registered queue, or several', value);
}

/** A queue in the result of a health check. */
export interface QueueHealth {
  /** How many jobs are in each state. */
  readonly counts: JobCounts;
  /** Whether the queue is paused. That is not a fault. */
  readonly paused: boolean;
  /** How long the oldest waiting job has waited, in ms; null if no job waits. */
  readonly oldestWaitingMs: number | null;
  /** State of this process's workers for the queue; absent if it has none. */
  readonly workers?: string;
}

/**
 * A health indicator for `@nestjs/terminus` 11 and 12. Provide it in the module that imports `TerminusModule`.
 *
 * `down` (HTTP 503): Redis does not answer in time or refuses writes, workers of this process do not run, or a queue is beyond `maxWaiting` or
 * `maxOldest`. `degraded` (HTTP 200): a queue is beyond the lower limits under `degraded`; Terminus 11 shows this as `up`. In both
 * cases `reasons` says why. A check makes three calls per queue.
 *
 * @example
 * ;@Controller()
 * export class HealthController {
 *   constructor(
 *     private readonly health: HealthCheckService,
 *     private readonly queues: QueueHealthIndicator,
 *   ) {}
 *
 *   ;@Get('health')@HealthCheck()
 *   check() {
 *     return this.health.check([() => this.queues.check('queues', { maxOldest: '5m', degraded: { maxWaiting: 1_000 } })]);
 *   }
 * }
 *
 * ;@Module({ imports: [TerminusModule], controllers: [HealthController], providers: [QueueHealthIndicator] })
 * export class HealthModule {}
 */
@Injectable()
export class QueueHealthIndicator {
  constructor(
    private readonly health: HealthIndicatorService,
    private readonly inspector: QueueInspector,
    private readonly runtime: QueueRuntime,
  ) {}

  /**
   * Checks Redis, the workers and the queues.
   *
   * @param key the name of the result in the response.
   * @throws {InvalidOptionError}
   * @throws {UnknownQueueError}
   */
  async check<const Key extends string>(
    key: Key,
    options: QueueHealthOptions = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const checked = checkHealthOptions(options);
    const { queues: only, timeoutMs } = checked;
    const workers = this.runtime.workers.filter(({ queue }) => only?.includes(queue) ?? true);
    const idle = checked.workers ? idleWorkers(workers) : [];
    let infos: readonly QueueInfo[];
    let refused: readonly RefusedWrites[];
    try {
      const looked = Promise.all([this.look(only), this.tryWrites(only)]);
      const late = () => new Error(`it has taken more than ${timeoutMs} ms`);
      [infos, refused] = await inTime(timeoutMs, looked, late);
    } catch (error) {
      if (error instanceof UnknownQueueError) throw error;
      const reasons = [escaped(`Redis does not answer: ${messageOf(error)}`), ...idle];
      return this.health.check(key).down({ reasons, workers });
    }
    const beyond = beyondLimits(infos, checked);
    return this.result(
      key,
      { down: [...refused.map(({ text }) => text), ...idle, ...beyond.down], degraded: beyond.degraded },
      show(infos, workers),
    );
  }

  /** Without queues, listing the workers shows whether Redis answers. */
  private async look(only: readonly string[] | undefined): Promise<readonly QueueInfo[]> {
    // Queues of other applications say nothing about the health of this one.
    const infos = await this.inspector.queues(only ?? this.inspector.registered);
    if (infos.length === 0) await this.inspector.workers();
    return infos;
  }

  private tryWrites(only: readonly string[] | undefined): Promise<readonly RefusedWrites[]> {
    const { registered } = this.inspector;
    return this.inspector.refusedWrites(only?.filter((name) => registered.includes(name)) ?? registered);
  }

  private result<Key extends string>(
    key: Key,
    { down, degraded }: Findings,
    queues: Readonly<Record<string, QueueHealth>>,
  ): HealthIndicatorResult<Key> {
    const session = this.health.check(key);
    if (down.length > 0) return session.down({ reasons: [...down, ...degraded], queues });
    if (degraded.length === 0) return session.up({ queues });
    const data = { reasons: degraded, queues };
    // Terminus 11 knows only up and down; `up` and `degraded` are both HTTP 200.
    return typeof session.degraded === 'function' ? session.degraded(data) : session.up(data);
  }
}

function show(infos: readonly QueueInfo[], workers: readonly QueueWorkers[]): Record<string, QueueHealth> {
  const stateOf = (name: string) => workers.find(({ queue }) => queue === name)?.state;
  return Object.fromEntries(
    infos.map(({ name, ...info }) => {
      const state = stateOf(name);
      return [name, { ...info, ...(state !== undefined && { workers: state }) }];
    }),
  );
}

/** One sentence for each problem. */
interface Findings {
  readonly down: readonly string[];
  readonly degraded: readonly string[];
}

/** State of the workers of this process for a queue. */
interface QueueWorkers {
  readonly queue: string;
  readonly state: string;
}

/** Workers of this process that do not run. */
function idleWorkers(workers: readonly QueueWorkers[]): string[] {
  return workers
    .filter(({ state }) => state !== 'running')
    .map(
      ({ queue, state }) => `the workers of queue '${queue}' are ${state === 'new' ? 'not started' : state}`,
    );
}

/** Queues beyond a limit; each limit is reported once, as down or as degraded. */
function beyondLimits(queues: readonly QueueInfo[], options: CheckedHealthOptions): Findings {
  const down = queues.flatMap((info) => beyond(info, options.down));
  const lower = (info: QueueInfo): CheckedLimits => ({
    maxWaiting: isBeyond(info.counts.waiting, options.down.maxWaiting)
      ? undefined
      : options.degraded.maxWaiting,
    maxOldestMs: isBeyond(info.oldestWaitingMs, options.down.maxOldestMs)
      ? undefined
      : options.degraded.maxOldestMs,
  });
  return { down, degraded: queues.flatMap((info) => beyond(info, lower(info))) };
}

function beyond(
  { name, counts, oldestWaitingMs }: QueueInfo,
  { maxWaiting, maxOldestMs }: CheckedLimits,
): string[] {
  const found: string[] = [];
  if (isBeyond(counts.waiting, maxWaiting))
    found.push(`queue '${name}' has ${counted(counts.waiting, 'waiting job')}, more than ${maxWaiting}`);
  if (isBeyond(oldestWaitingMs, maxOldestMs))
    found.push(
      `a job of queue '${name}' has waited for ${oldestWaitingMs} ms, longer than ${maxOldestMs} ms`,
    );
  return found;
}

function isBeyond(value: number | null, limit: number | undefined): boolean {
  return value !== null && limit !== undefined && value > limit;
}
