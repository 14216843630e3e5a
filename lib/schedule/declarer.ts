import { createHash } from 'node:crypto';
import { Log } from '../contract/log.js';
import { type Declaration, ownedRecord, ownerOf } from '../contract/declaration-verbs.js';
import type { QueueEngine } from '../contract/engine.js';
import type { PutSchedule } from '../contract/schedule-verbs.js';
import { isPassing, repeatDelay } from '../contract/retry.js';
import { NotRunningError } from '../errors.js';
import { messageOf } from '../errors/thrown.js';
import { quoted } from '../job/text.js';
import { type MadeSchedule, nextOf } from './record.js';

/** A schedule that is declared in code. */
export interface DeclaredSchedule {
  readonly id: string;
  /** `@Schedule('daily') of Reports.daily`, for messages. */
  readonly label: string;
  readonly made: MadeSchedule;
}

/** The schedules of one queue that has handlers in this process; there may be none. */
export interface QueueSchedules {
  readonly queue: string;
  readonly schedules: readonly DeclaredSchedule[];
}

interface DeclarerOptions {
  /** Owner of these schedules; schedules of other owners are not touched. */
  readonly owner: string;
  readonly leaseMs: number;
  /** Id of this start of this process. */
  readonly process: string;
}

type Engine = Pick<QueueEngine, 'schedules' | 'declarations'>;

/** Schedules that one step reads and writes. */
const STEP = 50;

/**
 * Registers the schedules that the code of this process declares, and renews the declaration while the process lives. Schedules
 * that no live process declares any more are removed. The end of this process removes none, since its successor may be about to
 * declare the same.
 */
export class Declarer {
  private readonly declarations = new Map<string, QueueDeclaration>();

  constructor(
    private readonly engine: Engine,
    private readonly options: DeclarerOptions,
  ) {}

  /** Resolves once each of these queues was tried; failures are retried in the background. Never rejects. */
  async start(queues: readonly QueueSchedules[]): Promise<void> {
    const fresh = queues.filter(({ queue }) => !this.declarations.has(queue));
    const declarations = fresh.map((given) => {
      const declaration = new QueueDeclaration(this.engine, given, this.options);
      this.declarations.set(given.queue, declaration);
      return declaration;
    });
    await Promise.all(declarations.map((one) => one.start()));
  }

  /** Withdraws the declaration of one queue. Never rejects: a declaration that could not be withdrawn expires. */
  async remove(queue: string): Promise<void> {
    const declaration = this.declarations.get(queue);
    this.declarations.delete(queue);
    await declaration?.stop();
  }

  /** Withdraws all declarations. Never rejects. */
  async stop(): Promise<void> {
    await Promise.all([...this.declarations.values()].map((one) => one.stop()));
  }
}

/** Keeps the declaration of one queue up to date. */
class QueueDeclaration {
  private readonly logger = new Log('QueueModule');
  private readonly declaration: Declaration;
  private readonly renewMs: number;
  private readonly warned = new Set<string>();
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> = Promise.resolve();
  private state: 'new' | 'declared' | 'idle' = 'new';
  /** True also if a call may have reached Redis without an answer. */
  private mayBeDeclared = false;
  private stopped = false;
  private tries = 0;
  /** Redis was unreachable at the first try, which was logged. */
  private isLate = false;

  constructor(
    private readonly engine: Engine,
    private readonly given: QueueSchedules,
    { owner, leaseMs, process }: DeclarerOptions,
  ) {
    const ttlMs = leaseMs * 2;
    this.declaration = { owner, process, ttlMs, set: digestOf(given.schedules) };
    // Two renewals may fail.
    this.renewMs = ttlMs / 3;
  }

  start(): Promise<void> {
    this.running = this.step();
    return this.running;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.running;
    if (!this.mayBeDeclared) return;
    try {
      await this.engine.declarations.withdraw(this.given.queue, this.declaration);
    } catch (error) {
      this.logger.debug(`withdrawing the schedules of queue '${this.given.queue}': ${messageOf(error)}`);
    }
  }

  private async step(): Promise<void> {
    try {
      if (this.state === 'declared') await this.renew();
      else await this.declare();
      if (this.isLate) this.logger.log(`the schedules of queue '${this.given.queue}' are registered now`);
      this.isLate = false;
      this.tries = 0;
      this.stepIn(this.renewMs);
    } catch (error) {
      this.logFailure(error);
      this.stepIn(isPassing(error) ? repeatDelay(error, this.tries) : this.renewMs);
      this.tries += 1;
    }
  }

  private stepIn(ms: number): void {
    if (this.stopped || this.state === 'idle') return;
    this.timer = setTimeout(() => {
      this.running = this.step();
    }, ms);
  }

  // ------------------------------------------------------------------------------------------------------- declaring

  private async declare(): Promise<void> {
    const { schedules } = this.given;
    for (let first = 0; first === 0 || first < schedules.length; first += STEP) {
      let open = schedules.slice(first, first + STEP);
      do {
        // oxlint-disable-next-line no-await-in-loop -- the first step declares what the next ones must not lose
        open = await this.write(open);
        if (this.stopped) return;
      } while (open.length > 0);
    }
    if (this.state === 'new') this.state = 'declared';
  }

  /** Returns the schedules that another process changed in between; they must be compared again. */
  private async write(schedules: readonly DeclaredSchedule[]): Promise<DeclaredSchedule[]> {
    const { queue } = this.given;
    const seen = await Promise.all(schedules.map((one) => this.compare(one)));
    const changes = seen.filter((change) => change !== null);
    this.mayBeDeclared = true;
    const { outcomes, removed, idle } = await this.engine.declarations.declare(queue, {
      ...this.declaration,
      ids: this.given.schedules.map(({ id }) => id),
      puts: changes.map(({ put }) => put),
    });
    const open: DeclaredSchedule[] = [];
    changes.forEach(({ schedule, put }, i) => {
      const name = this.named(schedule.id);
      if (outcomes[i] === 'changed') open.push(schedule);
      else if (outcomes[i] === 'written')
        this.logger.log(`${name} ${put.revision === 0 ? 'created' : 'updated'}: ${ruleIn(schedule)}`);
      else
        this.warn(
          `${name} is declared by a live process of another owner; ${schedule.label} was not registered`,
        );
    });
    this.logRemoved(removed);
    if (idle) this.end();
    return open;
  }

  /** The change to write; null if the schedule is current, or was created with `schedules.upsert()`. */
  private async compare(
    schedule: DeclaredSchedule,
  ): Promise<{ schedule: DeclaredSchedule; put: PutSchedule } | null> {
    const { id, label, made } = schedule;
    const { now, schedule: there } = await this.engine.schedules.get(this.given.queue, id);
    const record = ownedRecord(this.declaration.owner, made.record);
    if (there?.record === record) return null;
    if (there !== null && ownerOf(there.record) === null) {
      this.warn(
        `${this.named(id)} was created with schedules.upsert(), so ${label} was not registered; ` +
          `remove it with schedules.remove(), or give the decorator another id`,
      );
      return null;
    }
    const put = { id, revision: there?.revision ?? 0, record, nextAt: nextOf(made, there, now) };
    return { schedule, put };
  }

  private async renew(): Promise<void> {
    const answer = await this.engine.declarations.renew(this.given.queue, this.declaration);
    if (answer.kind === 'renewed') {
      this.logRemoved(answer.removed);
      if (answer.idle) this.end();
      // An older release may have written a different version of the same schedule.
      else if (answer.shifted) await this.declare();
      return;
    }
    this.state = 'new';
    await this.declare();
  }

  /** There is nothing to declare and nothing to remove. */
  private end(): void {
    this.state = 'idle';
    this.mayBeDeclared = false;
  }

  // --------------------------------------------------------------------------------------------------------- the log

  private named(id: string): string {
    return `schedule '${quoted(id).slice(1, -1)}' of queue '${this.given.queue}'`;
  }

  private logRemoved(ids: readonly string[]): void {
    for (const id of ids) {
      this.logger.log(`${this.named(id)} is no longer declared by any process: removed`);
    }
  }

  private logFailure(error: unknown): void {
    // The engine is closed: the process is shutting down.
    if (this.stopped || error instanceof NotRunningError) return;
    const message = messageOf(error);
    const { queue, schedules } = this.given;
    if (schedules.length === 0 || (this.state === 'declared' && isPassing(error))) {
      this.logger.debug(`the schedules of queue '${queue}' could not be checked, retrying: ${message}`);
    } else if (isPassing(error)) {
      this.isLate = true;
      if (this.tries === 0)
        this.warn(`the schedules of queue '${queue}' will be registered when Redis answers: ${message}`);
    } else {
      this.warn(`the schedules of queue '${queue}' cannot be registered, retrying: ${message}`);
    }
  }

  /** Logs each message once. */
  private warn(text: string): void {
    if (this.warned.has(text)) return;
    this.warned.add(text);
    this.logger.warn(text);
  }
}

function digestOf(schedules: readonly DeclaredSchedule[]): string {
  const hash = createHash('sha1');
  const sorted = schedules.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  for (const { id, made } of sorted) hash.update(`${id}\n${made.record}\n`);
  return hash.digest('hex').slice(0, 20);
}

function ruleIn({ made: { given, rule } }: DeclaredSchedule): string {
  if ('cron' in given) return `${given.cron} in ${rule.tz}`;
  return `every ${typeof given.every === 'number' ? `${given.every} ms` : given.every}`;
}
