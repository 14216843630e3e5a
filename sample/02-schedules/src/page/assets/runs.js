/**
 * What the events of the queue say about each run of a schedule. Plain data in, plain data out: nothing here knows the page.
 *
 * @typedef {{ id: string, schedule: string, state: 'waiting' | 'active' | 'delayed' | 'completed' | 'dead', at: Date,
 *   byHand: boolean, startedAt?: Date, durationMs?: number, attempt?: number, message?: string }} Run
 */

const MAX_KEPT = 200;

export class Runs {
  /** @type {Map<string, Run>} the oldest first */
  byId = new Map();
  #last = 0;
  #lastAt = new Date(0);

  /** Takes one event; answers whether anything changed. */
  apply(event) {
    const at = new Date(event.at);
    if (Number(event.eventId) <= this.#last) {
      // After a lost connection the server may say again what it said before.
      if (at <= this.#lastAt) return false;
      // A later event with a smaller number: the server came back with another, empty Redis.
      this.byId.clear();
    }
    this.#last = Number(event.eventId);
    this.#lastAt = at;
    if (event.schedule === null) return false;
    if (event.type === 'removed') return this.byId.delete(event.jobId);
    const change = MOVES[event.type]?.(event, at);
    if (!change) return false;
    Object.assign(this.byId.get(event.jobId) ?? this.#begin(event, at), change);
    return true;
  }

  /** Of one schedule, the oldest first. */
  of(schedule) {
    return [...this.byId.values()].filter((run) => run.schedule === schedule);
  }

  #begin(event, at) {
    // The id of an occurrence ends with its time, that of a run asked for does not.
    const byHand = !/@\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(event.jobId);
    const run = { id: event.jobId, schedule: event.schedule, at, byHand };
    this.byId.set(run.id, run);
    for (const oldest of this.byId.keys()) {
      if (this.byId.size <= MAX_KEPT) break;
      this.byId.delete(oldest);
    }
    return run;
  }
}

const ended = (state, { durationUs, error, attempt }) => ({
  state,
  attempt,
  durationMs: durationUs === undefined ? undefined : durationUs / 1000,
  message: error?.message,
});

const MOVES = {
  added: () => ({ state: 'waiting' }),
  delayed: () => ({ state: 'delayed' }),
  active: ({ attempt }, at) => ({ state: 'active', attempt, startedAt: at }),
  completed: (event) => ended('completed', event),
  retrying: (event) => ended('delayed', event),
  dead: (event) => ended('dead', event),
  stalled: () => ({ state: 'waiting', message: 'its process is gone' }),
  released: () => ({ state: 'waiting', message: 'its process was stopped' }),
};
