import { isEnd, type QueueEvent } from '#lib/events/queue-event.js';

const STARTS: ReadonlySet<string> = new Set(['added', 'delayed']);
const GIVES_BACK: ReadonlySet<string> = new Set(['retrying', 'released', 'stalled']);

/** The events of one job id, in their order. An id is used again if it is given by the user, or the job is retried. */
export class JobEvents {
  /** How many jobs with this id there were. */
  lives = 0;
  state: 'gone' | 'waits' | 'runs' = 'gone';
  readonly ends: string[] = [];
  /** When it was claimed, by the clock of Redis. Claims that were given back count as none. */
  readonly claimedAt: number[] = [];

  /** Takes the next event. Returns what is wrong with it. */
  next(event: QueueEvent): string | null {
    const { type } = event;
    const { state } = this;
    if (STARTS.has(type)) {
      if (state === 'gone') this.lives += 1;
      this.state = 'waits';
      return null;
    }
    if (type === 'active') {
      this.claimedAt.push(event.at.getTime());
      this.state = 'runs';
      return state === 'waits' ? null : `is claimed while it ${state === 'runs' ? 'runs' : 'is gone'}`;
    }
    if (GIVES_BACK.has(type)) {
      if (type === 'released') this.claimedAt.pop();
      this.state = 'waits';
      return state === 'runs' ? null : `is ${type}, but does not run`;
    }
    if (!isEnd(event)) return null;
    this.ends.push(type);
    // It was claimed, but had expired or was cancelled.
    if (state === 'runs' && 'attempt' in event && event.attempt === 0) this.claimedAt.pop();
    this.state = 'gone';
    // A job that is kept after its end is removed later.
    if (state === 'gone' && type !== 'removed') return `is ${type}, but was gone`;
    return type === 'completed' && state !== 'runs' ? 'is completed, but did not run' : null;
  }
}
