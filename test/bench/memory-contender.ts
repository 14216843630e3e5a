import { setImmediate as turn } from 'node:timers/promises';
import type { Contender, OpenOptions, Payload, Session, Work } from '../../bench/src/contender.js';

/** The fault of a contender in memory. */
export interface Faults {
  /** Handles this job once more when it has ended. */
  readonly twice?: number;
  /** Handles this job once more while the others are acknowledged. */
  readonly twiceAtTheEnd?: number;
  /** Says twice that it has completed this job. */
  readonly stutter?: number;
  /** Gives jobs to the handler without the note they came with. */
  readonly losesNotes?: boolean;
}

/** How often `outstanding` is asked until the last job is acknowledged. */
const ACKNOWLEDGED_AFTER = 3;

/** A queue in this process: it does all that is asked of a contender, and the wrong that it is told to do. */
export class MemoryContender implements Contender {
  readonly name = 'memory';
  readonly packages = [];
  readonly terms = ['in memory'];
  readonly offers = ['acknowledged', 'retries', 'results', 'events'] as const;
  /** Results of the completed jobs, if results are kept. */
  readonly kept: unknown[] = [];
  readonly opened: OpenOptions[] = [];
  acknowledged = 0;
  closed = 0;

  private readonly waiting: Payload[] = [];
  private unacknowledged = 0;
  private asked = 0;
  private readonly watchers: ((queue: string) => void)[] = [];

  constructor(private readonly faults: Faults = {}) {}

  async open(options: OpenOptions): Promise<Session> {
    this.opened.push(options);
    if (options.watch) this.watchers.push(options.watch);
    const { work } = options;
    if (work) for (let i = 0; i < work.concurrency; i++) void this.slot(work, options);
    return {
      add: async (_, job) => this.waiting.push(job),
      addBulk: async (_, jobs) => this.waiting.push(...jobs),
      outstanding: async () => this.outstanding(work),
      close: async () => void (this.closed += 1),
    };
  }

  private async slot(work: Work, { retry, keepResults }: OpenOptions): Promise<void> {
    for (let job = this.waiting.shift(); job !== undefined; job = this.waiting.shift()) {
      this.unacknowledged += 1;
      const given = this.faults.losesNotes ? { ...job, note: '' } : job;
      for (let attempt = 1; ; attempt++) {
        await turn();
        try {
          const result = await work.handle(given);
          if (keepResults) this.kept.push(result);
          break;
        } catch (error) {
          if (attempt >= (retry?.attempts ?? 1)) throw error;
        }
      }
      if (job.n === this.faults.twice) work.handle(given);
      for (const watch of this.watchers) watch('bench');
      if (job.n === this.faults.stutter) for (const watch of this.watchers) watch('bench');
    }
  }

  private outstanding(work: Work | undefined): number {
    if (work === undefined) return this.waiting.length;
    this.asked += 1;
    if (this.asked < ACKNOWLEDGED_AFTER) return this.unacknowledged;
    if (this.faults.twiceAtTheEnd !== undefined)
      work.handle({ n: this.faults.twiceAtTheEnd, to: '', template: '' });
    this.acknowledged = this.unacknowledged;
    return 0;
  }
}
