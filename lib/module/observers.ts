import { idsNotAdded, type Duplicate, type EnqueueJob, type QueueEngine } from '../contract/engine.js';
import { tracedEnd, type NotAdded, type ObservedRun, type WorkObserver } from '../contract/observer.js';
import { MinuteRecorder } from '../history/minute-recorder.js';
import type { ResolvedModuleOptions } from '../options/module-options.js';
import type { QueueTelemetry, TracedEnd } from '../options/telemetry.js';
import type { FireAnswer, FireSchedule } from '../contract/schedule-verbs.js';

/**
 * Reports the work of this process to observers, such as counters and metrics. Without observers the hot path is unchanged: verbs are
 * replaced by observed ones only when the first observer is added.
 */
export class Observers {
  private readonly all: WorkObserver[] = [];
  private readonly recorder: MinuteRecorder | undefined;
  private readonly telemetry: QueueTelemetry | undefined;
  private observesExchanges = false;

  constructor(
    private readonly engine: QueueEngine,
    { history, telemetry }: Pick<ResolvedModuleOptions, 'history' | 'telemetry'>,
  ) {
    this.telemetry = telemetry;
    if (!history) return;
    this.recorder = new MinuteRecorder(engine);
    this.add(this.recorder);
  }

  /** Adds an observer. Called before the workers start. */
  add(observer: WorkObserver): void {
    this.all.push(observer);
    if (this.all.length === 1) this.observeAdds();
    if ('exchanged' in observer && !this.observesExchanges) this.observeExchanges();
  }

  /** Called when this process has recovered jobs from a worker that went silent. `dead` of them have stalled too often. */
  stalled(queue: string, count: number, dead: number): void {
    for (const observer of this.all) observer.stalled?.(queue, count, dead);
    for (let i = 0; i < dead; i++) this.telemetry?.ended(queue, '', DEAD_AS_STALLED);
  }

  /** The function that pools call when a run is over. Undefined if there are no observers. */
  get ended(): ((queue: string, name: string, run: ObservedRun) => void) | undefined {
    const { telemetry } = this;
    if (this.all.length === 0)
      return telemetry && ((queue, name, run) => telemetry.ended(queue, name, tracedEnd(run)));
    return (queue, name, run) => {
      telemetry?.ended(queue, name, tracedEnd(run));
      const now = this.engine.now();
      for (const observer of this.all) observer.ended(queue, name, run, now);
    };
  }

  /** Writes the last counters. Never rejects. */
  async finish(): Promise<void> {
    await this.recorder?.write();
  }

  close(): void {
    this.recorder?.stop();
  }

  private observeAdds(): void {
    const { engine } = this;
    replace(engine, 'adds', {
      stored: (...call) => this.stored(...call),
      failed: (queue, jobs) => this.notAdded(queue, jobs, 'failed'),
      refused: (queue, jobs, why) => this.notAdded(queue, jobs, why),
    });
    const { schedules } = engine;
    const fire = schedules.fire.bind(schedules);
    replace(schedules, 'fire', (queue, calls) => this.fired(queue, calls, fire(queue, calls)));
  }

  private observeExchanges(): void {
    this.observesExchanges = true;
    const { engine } = this;
    const exchange = engine.exchange.bind(engine);
    const claimAtBell = engine.claimAtBell?.bind(engine);
    const tell = (ms: number | null, settled: number, claimed: number) => {
      for (const observer of this.all) observer.exchanged?.(ms, settled, claimed);
    };
    replace(engine, 'exchange', async (queue, call) => {
      const start = performance.now();
      const answer = await exchange(queue, call);
      const claimed = answer.kind === 'exchanged' ? answer.claimed.length : 0;
      tell(performance.now() - start, call.settled.length, claimed);
      return answer;
    });
    if (!claimAtBell) return;
    replace(engine, 'claimAtBell', (...call) => {
      const left = claimAtBell(...call);
      left?.then(
        ({ rung, answer }) => {
          if (rung && answer) tell(null, 0, answer.claimed.length);
        },
        () => undefined,
      );
      return left;
    });
  }

  private stored(
    queue: string,
    jobs: readonly EnqueueJob[],
    duplicates: readonly Duplicate[],
    removed = 0,
  ): void {
    if (removed > 0) for (const observer of this.all) observer.madeRoom?.(queue, removed);
    const there = idsNotAdded(duplicates);
    const stored = jobs.filter(({ id }) => !there.has(id)).map(({ name }) => name);
    for (const observer of this.all) observer.added(queue, stored);
    if (there.size === 0) return;
    const dropped = new Set(duplicates.flatMap((one) => (one.dropped ? [one.id] : [])));
    const rest = jobs.filter(({ id }) => there.has(id));
    const none = rest.filter(({ id }) => dropped.has(id));
    if (none.length > 0) this.notAdded(queue, none, 'dropped');
    const others = none.length > 0 ? rest.filter(({ id }) => !dropped.has(id)) : rest;
    this.notAdded(queue, others, 'duplicate');
  }

  private notAdded(queue: string, jobs: readonly EnqueueJob[], why: NotAdded): void {
    const names = jobs.map(({ name }) => name);
    for (const observer of this.all) observer.notAdded?.(queue, names, why);
  }

  private async fired(
    queue: string,
    calls: readonly FireSchedule[],
    answered: Promise<FireAnswer>,
  ): Promise<FireAnswer> {
    const answer = await answered;
    const names = calls.flatMap(({ jobs }, i) => jobs.slice(0, answer.made[i] ?? 0).map(nameIn));
    if (names.length > 0) for (const observer of this.all) observer.added(queue, names);
    return answer;
  }
}

const DEAD_AS_STALLED: TracedEnd = {
  outcome: 'dead',
  hasRun: false,
  durationUs: 0,
  reason: 'stalled',
  failure: null,
};

/** The first line of a body. */
function nameIn({ body }: { readonly body: string }): string {
  return body.slice(0, body.indexOf('\n'));
}

/** Verbs of an engine for several stores cannot be assigned, so they are defined. */
function replace<T, K extends keyof T>(object: T, verb: K, value: T[K]): void {
  Object.defineProperty(object, verb, { value, configurable: true, enumerable: true, writable: true });
}
