import type { OldJob, OldQueue, OldState } from '../../moving/old-queue.js';

type Jobs = Record<OldState, (OldJob | null)[]>;

/** A queue as BullMQ shows it, in memory; what it does itself is seen by the specs that have BullMQ (`e2e-bullmq`). */
export class FakeOldQueue implements OldQueue {
  readonly name = 'audio';
  readonly jobs: Jobs;
  readonly acts: string[] = [];
  paused = false;
  refuseRemoval = false;

  constructor(jobs: Partial<Jobs>) {
    this.jobs = { waiting: [], prioritized: [], delayed: [], failed: [], ...jobs };
    for (const [state, list] of Object.entries(this.jobs)) {
      for (const job of list) if (job) job.remove = async () => this.remove(state as OldState, job);
    }
  }

  async isPaused(): Promise<boolean> {
    return this.paused;
  }

  async pause(): Promise<void> {
    this.acts.push('pause');
    this.paused = true;
  }

  async resume(): Promise<void> {
    this.acts.push('resume');
    this.paused = false;
  }

  async getJobs([state]: OldState[], start: number, end: number): Promise<(OldJob | null)[]> {
    return this.jobs[state!].slice(start, end + 1);
  }

  async getJobCounts(): Promise<Record<string, number>> {
    return Object.fromEntries(Object.entries(this.jobs).map(([state, list]) => [state, list.length]));
  }

  private remove(state: OldState, job: OldJob): void {
    if (this.refuseRemoval) throw new Error('no more removals');
    this.acts.push(`remove ${job.id}`);
    this.jobs[state].splice(this.jobs[state].indexOf(job), 1);
  }
}

export function oldJob(given: Partial<OldJob>): OldJob {
  return {
    name: 'transcode',
    data: { file: 'audio.mp3' },
    opts: {},
    timestamp: Date.now(),
    delay: 0,
    attemptsMade: 0,
    remove: () => Promise.reject(new Error('not in a queue')),
    ...given,
  };
}
