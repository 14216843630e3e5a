import { randomBytes } from 'node:crypto';
import { Log } from '../../contract/log.js';
import { within } from '../../contract/retry.js';
import { InvalidOptionError } from '../../errors.js';
import { messageOf, stackOf } from '../../errors/thrown.js';
import type { Duration } from '../../job/duration.js';
import { counted } from '../../job/text.js';
import { duration, field, readable, refuse, rule, shape } from '../../options/check.js';
import { advance, alertsOf, readState, delivered, type Alert, type AlertState } from './alert-state.js';
import { measure, type AlertSource } from './measure.js';
import { readRules, readShortText, type AlertRule, type CheckedRule } from './rules.js';

/**
 * Sends a notification of an alert. If it throws or rejects, it is called again after the next evaluation: with the same alert, or
 * with its end if it is resolved.
 */
export type Notify = (alert: Alert) => unknown;

/** Options of `QueueAlertsModule.forRoot` and `createAlerts`. */
export interface QueueAlertsOptions {
  /** 1 to 100 rules. */
  readonly rules: readonly AlertRule[];
  /**
   * A function, a `webhook()`, or a list of them: all are called for each alert. Each call may take up to 30 s. If one fails, only
   * that one is called again.
   */
  readonly notify: Notify | readonly Notify[];
  /** How often the rules are evaluated, by one process for all, 1 s to 1 hour. @default '15s' */
  readonly interval?: Duration;
  /** Name of the system that the alerts come from, such as `'shop production'`, for the receiver. @default none */
  readonly source?: string;
}

/** Failed calls of one receiver since the last one that succeeded. */
interface Failures {
  readonly calls: number;
  readonly isLogged: boolean;
  /** Keys of the rows whose last call failed. */
  readonly keys: ReadonlySet<string>;
}

const NO_FAILURES: Failures = { calls: 0, isLogged: false, keys: new Set() };

/** `QueueAlertsOptions` with defaults. */
interface CheckedAlertsOptions {
  readonly rules: readonly CheckedRule[];
  readonly notify: readonly Notify[];
  readonly intervalMs: number;
  readonly source: string | null;
}

const SECOND_MS = 1_000;
const NOTIFY_MS = 30_000;
/** If the leader is killed, another process leads after this many intervals, or after this time if the intervals are short. */
const LEASE_INTERVALS = 3;
const LEAST_LEASE_MS = 5_000;
/** Most queues that a log line names. */
const MAX_NAMED = 5;
/** Maximum time of one evaluation of all rules. */
const EVALUATION_MS = 60_000;

const readOptions = shape({
  rules: field('rules', readRules),
  notify: field('notify', rule(readNotify)),
  interval: field('intervalMs', duration(SECOND_MS, 3_600_000)),
  source: field('source', rule(readShortText)),
});

/** @throws {InvalidOptionError} */
export function checkAlertsOptions(options: unknown, path: string): CheckedAlertsOptions {
  const { rules, notify, intervalMs = 15_000, source = null } = readOptions(options, path, refuse)!;
  if (!rules) throw new InvalidOptionError(`${path}.rules`, 'a list of rules', undefined);
  if (!notify)
    throw new InvalidOptionError(`${path}.notify`, 'a function, or a list of functions', undefined);
  return { rules, notify, intervalMs, source };
}

/**
 * Evaluates the rules once per interval for all processes of the prefix, and calls `notify` when an alert fires and when it is
 * resolved. Any number of processes may run it. One of them leads; if it stops or is killed, another one takes over. The state is
 * in Redis, so a restart does not repeat notifications.
 *
 * @example
 * const firing = await app.get(QueueAlerts).firing(); // with QueueAlertsModule
 */
export class QueueAlerts {
  private readonly logger = new Log('QueueAlerts');
  private readonly owner = randomBytes(9).toString('base64url');
  private readonly leaseMs: number;
  /** Keys of rows for which `notify` is running. */
  private readonly delivering = new Set<string>();
  private deliveredSince: { readonly key: string; readonly alert: Alert; readonly at: number }[] = [];
  private turn: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private evaluating: Promise<void> | undefined;
  private isClosed = false;
  private hasResigned = false;
  private readonly deliveries = new Set<Promise<void>>();
  /** By the place of the receiver in the list. */
  private readonly failures = new Map<number, Failures>();
  /** Whether the last evaluation failed. */
  private isFailing = false;
  private lastFaults = '';

  /** @internal */
  constructor(
    private readonly source: AlertSource,
    private readonly options: CheckedAlertsOptions,
  ) {
    this.leaseMs = Math.max(LEAST_LEASE_MS, options.intervalMs * LEASE_INTERVALS);
  }

  /**
   * The alerts that fire now, as the last evaluation found them; the same in every process.
   *
   * @throws {RedisUnavailableError | RedisRefusedError}
   */
  async firing(): Promise<readonly Alert[]> {
    // With a lease of 0 ms, this call does not become the leader.
    const { state } = await this.source.engine.processes.lead({ owner: '', leaseMs: 0, state: '' });
    const { rules, source } = this.options;
    const now = this.source.engine.now();
    return alertsOf(readState(state).rows, rules, source, 'firing', now).map(({ alert }) => alert);
  }

  /** @internal */
  start(): void {
    if (this.timer !== undefined || this.isClosed) return;
    this.next(0);
  }

  /** @internal Never rejects. Another process may lead at once. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    clearTimeout(this.timer);
    // The deliveries are stored before another process leads.
    await within(SECOND_MS, this.finish());
    this.hasResigned = true;
    const last = { owner: this.owner, leaseMs: 0, state: '' };
    if (this.timer !== undefined) await within(SECOND_MS, this.source.engine.processes.lead(last));
  }

  private async finish(): Promise<void> {
    await this.evaluating;
    await Promise.all(this.deliveries);
    await this.turn;
  }

  private next(ms: number): void {
    if (this.isClosed) return;
    this.timer = setTimeout(() => {
      this.evaluating = within(EVALUATION_MS, this.tryEvaluate()).then(() =>
        this.next(this.options.intervalMs),
      );
    }, ms);
  }

  /** Never rejects. If Redis is unreachable, the next evaluation tries again. */
  private async tryEvaluate(): Promise<void> {
    try {
      await this.inTurn(() => this.evaluate());
      if (this.isFailing) this.logger.log('the rules are evaluated again');
      this.isFailing = false;
    } catch (error) {
      // During an outage the errors differ.
      if (!this.isFailing) this.logger.warn(`the rules could not be evaluated: ${messageOf(error)}`);
      this.isFailing = true;
    }
  }

  /** Runs one act after the other: each reads the state and writes it, so two of them must not overlap. */
  private inTurn(act: () => Promise<void>): Promise<void> {
    const done = this.turn.then(act);
    this.turn = done.catch(() => undefined);
    return done;
  }

  private async evaluate(): Promise<void> {
    const { engine } = this.source;
    const { rules, source, notify } = this.options;
    const { owner, leaseMs } = this;
    const before = await engine.processes.lead({ owner, leaseMs, state: '' });
    if (!before.isLeader) {
      this.failures.clear();
      return;
    }
    const { rows, counters: earlier } = readState(before.state);
    const { readings, counters, faults } = await measure(this.source, rules, earlier);
    this.logFaults(faults);
    if (this.isClosed) return;
    const now = Math.floor(engine.now());
    const known = this.takeDelivered(rows);
    const receivers = { count: notify.length, busy: this.delivering };
    const state: AlertState = { rows: advance(known, readings, rules, receivers, now, faults), counters };
    const answer = await engine.processes.lead({ owner, leaseMs, state: JSON.stringify(state) });
    // The evaluation took longer than the lease, so another process leads now and sends the notifications.
    if (!answer.isLeader) return;
    for (const { key, receiver, alert } of alertsOf(state.rows, rules, source, 'undelivered', now))
      this.track(this.deliver(key, receiver, alert));
  }

  private logFaults(faults: ReadonlyMap<string, Error>): void {
    const texts = Array.from(faults, ([queue, error]) => `queue '${queue}': ${messageOf(error)}`);
    const text = texts.slice(0, MAX_NAMED).join('; ');
    if (text !== '' && text !== this.lastFaults)
      this.logger.warn(`the rules could not be evaluated for ${counted(texts.length, 'queue')}: ${text}`);
    this.lastFaults = text;
  }

  private track(delivery: Promise<void>): void {
    this.deliveries.add(delivery);
    void delivery.finally(() => this.deliveries.delete(delivery));
  }

  /** Marks the alerts that were delivered since the last call. */
  private takeDelivered(rows: AlertState['rows']): AlertState['rows'] {
    const all = this.deliveredSince;
    this.deliveredSince = [];
    return all.reduce((left, { key, alert, at }) => delivered(left, key, alert, at), rows);
  }

  /** Calls `notify`. If it fails, it is called again after the next evaluation. */
  private async deliver(key: string, receiver: number, alert: Alert): Promise<void> {
    if (this.delivering.has(key)) return;
    this.delivering.add(key);
    try {
      await this.call(this.options.notify[receiver]!, alert);
      this.deliveredSince.push({ key, alert, at: Math.floor(this.source.engine.now()) });
      this.logSuccess(key, receiver);
    } catch (error) {
      this.logFailure(key, receiver, alert, error);
    }
    try {
      // The delivery is stored at once, so that it is not repeated if this process is killed now.
      if (this.deliveredSince.length > 0) await this.inTurn(() => this.store());
    } catch {
      // The next evaluation stores it. If it fails too, it logs why.
    } finally {
      this.delivering.delete(key);
    }
  }

  /** A receiver that stays down is called after each evaluation, so only its first failure is logged. */
  private logFailure(key: string, receiver: number, { id }: Alert, error: unknown): void {
    const { calls, isLogged, keys } = this.failures.get(receiver) ?? NO_FAILURES;
    const isNew = !isLogged && !keys.has(key);
    this.failures.set(receiver, {
      calls: calls + 1,
      isLogged: isLogged || isNew,
      keys: new Set([...keys, key]),
    });
    if (isNew)
      this.logger.error(`the alert ${id} could not be delivered: ${messageOf(error)}`, stackOf(error));
  }

  private logSuccess(key: string, receiver: number): void {
    const { calls, isLogged, keys } = this.failures.get(receiver) ?? NO_FAILURES;
    if (isLogged) this.logger.log(`alerts are delivered again, after ${counted(calls, 'failed call')}`);
    // An alert that this receiver always refuses is not logged again each time it accepts another one.
    this.failures.set(receiver, { ...NO_FAILURES, keys: new Set([...keys].filter((one) => one !== key)) });
  }

  private async call(notify: Notify, alert: Alert): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((_, reject) => {
      const fault = new Error(`notify did not end within ${NOTIFY_MS / SECOND_MS} s`);
      timer = setTimeout(() => reject(fault), NOTIFY_MS).unref();
    });
    try {
      await Promise.race([notify(alert), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  private async store(): Promise<void> {
    if (this.hasResigned) return;
    const { owner, leaseMs } = this;
    const { processes } = this.source.engine;
    const { isLeader, state } = await processes.lead({ owner, leaseMs, state: '' });
    if (!isLeader || this.deliveredSince.length === 0) return;
    const { rows, counters } = readState(state);
    const next = { rows: this.takeDelivered(rows), counters };
    await processes.lead({ owner, leaseMs, state: JSON.stringify(next) });
  }
}

function readNotify(value: unknown, path: string): readonly Notify[] {
  const list =
    typeof value === 'function'
      ? [value]
      : readable(value, path, () => (Array.isArray(value) ? [...(value as unknown[])] : []));
  if (list.length > 0 && list.every((one) => typeof one === 'function')) return list as Notify[];
  throw new InvalidOptionError(path, 'a function, or a list of functions', value);
}
