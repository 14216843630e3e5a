import { HeldBack } from '../contract/held-back.js';
import { Log } from '../contract/log.js';
import { breakerText, type LimitVerbs, type RunReportAnswer } from '../contract/limit-verbs.js';
import { messageOf } from '../errors/thrown.js';
import type { LimitField, LimitRule } from '../job/limit-rule.js';
import type { Outcome } from '../job/outcome.js';
import type { ResolvedLimits } from '../options/limit-options.js';
import type { Run } from './run.js';

/** How runs that count for one limit ended since the last report, and the callers that wait for the answer. */
interface Collected {
  completed: number;
  failed: number;
  firsts: number;
  unbooked: number;
  readonly retries: ((delayMs: number) => void)[];
  readonly failures: ((delayMs: number) => void)[];
}

/** A run that has ended. */
type Ended = Pick<Run, 'name' | 'group' | 'attempt'>;

/**
 * Reports to the circuit breakers and retry budgets of a queue how its runs ended, in one call per tick. A failed run is settled
 * after the answer, so a breaker that it opens is open before this worker claims again.
 */
export class RunReports {
  private readonly logger = new Log('QueueWorker');
  private readonly collected = new Map<LimitField, Collected>();
  private isPlanned = false;
  private readonly heldBack = new Map<LimitField, HeldBack>();

  private constructor(
    private readonly queue: string,
    private readonly limits: Pick<LimitVerbs, 'report'>,
    private readonly rules: ReadonlyMap<LimitField, LimitRule>,
    private readonly isFailure: ResolvedLimits['isFailure'],
    private readonly shared = [...rules.keys()].filter((field) => field.startsWith('s:')),
  ) {}

  /** Undefined if no limit of the queue has a breaker or a retry budget. */
  static of(
    queue: string,
    limits: Pick<LimitVerbs, 'report'>,
    declared: ResolvedLimits | undefined,
  ): RunReports | undefined {
    if (!declared) return undefined;
    const shared = [...declared.shared].map(([name, rule]): [LimitField, LimitRule] => [`s:${name}`, rule]);
    const rules = [...declared.rules, ...shared].filter(([, rule]) => rule.breaker || rule.retryBudget);
    return rules.length > 0 ? new RunReports(queue, limits, new Map(rules), declared.isFailure) : undefined;
  }

  completed(run: Ended): void {
    for (const field of this.fieldsOf(run)) {
      if (this.rules.get(field)!.breaker) this.of(field).completed += 1;
      if (run.attempt === 1) this.countFirst(field);
    }
  }

  /**
   * Resolves to the time by which the retry must be delayed beyond its backoff. Undefined if this failure does not count. Never
   * rejects.
   */
  failed(run: Ended, outcome: Outcome, error: unknown): Promise<number> | undefined {
    const isRetry = outcome.kind === 'retried' && outcome.counted;
    if (!isRetry && !(outcome.kind === 'dead' && outcome.reason === 'retries-exhausted')) return undefined;
    const delays: Promise<number>[] = [];
    for (const field of this.fieldsOf(run)) {
      const { breaker, retryBudget } = this.rules.get(field)!;
      const counts = Boolean(breaker) && this.isFault(field, error);
      // The service has answered. If this run is a probe, the breaker must not stay open.
      if (breaker && !counts) this.of(field).completed += 1;
      const books = isRetry && Boolean(retryBudget);
      if (run.attempt === 1) this.countFirst(field);
      if (!counts && !books) continue;
      const of = this.of(field);
      if (counts) of.failed += 1;
      delays.push(new Promise((resolve) => (books ? of.retries : of.failures).push(resolve)));
    }
    if (delays.length === 0) return undefined;
    return Promise.all(delays).then((all) => Math.max(0, ...all));
  }

  /** A retry that was reported as a failed run before does not happen: it would come too late. */
  unbooked(run: Ended): void {
    for (const field of this.fieldsOf(run))
      if (this.rules.get(field)!.retryBudget) this.of(field).unbooked += 1;
  }

  /** A job with a group waits in the line of its group, where no limit of its name applies. */
  private fieldsOf({ name, group }: Ended): LimitField[] {
    const ofName = group === null ? [`n:${name}`] : [];
    return ['q', ...ofName, ...this.shared].filter((field) => this.rules.has(field));
  }

  /** Only a retry budget with a percentage needs this count. */
  private countFirst(field: LimitField): void {
    const { retryBudget } = this.rules.get(field)!;
    if (retryBudget && retryBudget.percent) this.of(field).firsts += 1;
  }

  private isFault(field: LimitField, error: unknown): boolean {
    const counts = this.isFailure.get(field);
    if (!counts) return true;
    try {
      return counts(error);
    } catch (why) {
      this.logger.warn(
        `queue '${this.queue}': isFailure of a breaker failed, so the error counts: ${messageOf(why)}`,
      );
      return true;
    }
  }

  private of(field: LimitField): Collected {
    let of = this.collected.get(field);
    if (!of) {
      of = { completed: 0, failed: 0, firsts: 0, unbooked: 0, retries: [], failures: [] };
      this.collected.set(field, of);
    }
    if (!this.isPlanned) {
      this.isPlanned = true;
      setImmediate(() => void this.send());
    }
    return of;
  }

  private async send(): Promise<void> {
    this.isPlanned = false;
    const all = [...this.collected];
    this.collected.clear();
    // These reports are separate. In one report with the new retries the numbers could add up to 0, and the new retries would get no times.
    const undone = all.flatMap(([field, { unbooked }]) =>
      unbooked > 0 ? [{ field, completed: 0, failed: 0, firsts: 0, retries: -unbooked }] : [],
    );
    const reports = all.map(([field, { completed, failed, firsts, retries }]) => ({
      field,
      completed,
      failed,
      firsts,
      retries: retries.length,
    }));
    let answers: readonly RunReportAnswer[] = [];
    try {
      answers = (await this.limits.report(this.queue, [...undone, ...reports])).slice(undone.length);
    } catch (error) {
      this.logger.debug(`queue '${this.queue}': runs are not counted by its limits: ${messageOf(error)}`);
    }
    for (const [i, [field, { retries, failures }]] of all.entries()) {
      const { breaker = '', firstMs = 0, eachMs = 0 } = answers[i] ?? {};
      this.tell(field, breaker);
      if (retries.length > 0 && firstMs + (retries.length - 1) * eachMs > 0) this.retriesWait(field);
      for (const settle of failures) settle(0);
      for (const [at, settle] of retries.entries()) settle(Math.ceil(firstMs + at * eachMs));
    }
  }

  /** The budget allows some of the last retries only later. */
  private retriesWait(field: LimitField): void {
    let heldBack = this.heldBack.get(field);
    if (!heldBack) {
      const budget = field === 'q' ? 'its retry budget' : `the retry budget of '${field.slice(2)}'`;
      heldBack = new HeldBack(
        this.logger,
        `queue '${this.queue}': ${budget} is used up; retries wait`,
        `queue '${this.queue}': ${budget} no longer delays retries`,
      );
      this.heldBack.set(field, heldBack);
    }
    heldBack.now();
    heldBack.over();
  }

  stop(): void {
    for (const heldBack of this.heldBack.values()) heldBack.stop();
  }

  private tell(field: LimitField, change: RunReportAnswer['breaker']): void {
    const of = breakerText(field);
    if (change === 'opened')
      this.logger.warn(`queue '${this.queue}': ${of} opened, because too many runs fail; jobs wait`);
    if (change === 'closed') this.logger.log(`queue '${this.queue}': ${of} closed; jobs start again`);
  }
}
