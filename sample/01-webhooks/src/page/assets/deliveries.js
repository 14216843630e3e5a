/**
 * What the events of the queue say about each delivery. Plain data in, plain data out: nothing here knows the page.
 *
 * @typedef {{ attempt: number, at: Date, outcome: 'running' | 'delivered' | 'failed' | 'lost', durationMs?: number,
 *   message?: string, retryInMs?: number, again?: boolean }} Run
 * @typedef {{ id: string, state: 'waiting' | 'active' | 'delayed' | 'completed' | 'dead', at: Date, dueAt?: Date,
 *   reason?: string, runs: Run[], again: boolean, details?: any }} Delivery
 */

const MAX_KEPT = 50;

export class Deliveries {
  /** @type {Map<string, Delivery>} the oldest first */
  byId = new Map();
  /** How many are no longer kept here. */
  dropped = 0;
  #last = 0;
  #lastAt = new Date(0);

  /** Takes one event; answers the delivery that it changed, if any. */
  apply(event) {
    const at = new Date(event.at);
    if (Number(event.eventId) <= this.#last) {
      // After a lost connection the server may say again what it said before.
      if (at <= this.#lastAt) return undefined;
      // A later event with a smaller number: the server came back with another, empty Redis.
      this.byId.clear();
      this.dropped = 0;
    }
    this.#last = Number(event.eventId);
    this.#lastAt = at;
    if (event.jobId === undefined) return undefined;
    if (event.type === 'removed') {
      this.byId.delete(event.jobId);
      return undefined;
    }
    const delivery = this.byId.get(event.jobId) ?? this.#begin(event);
    MOVES[event.type]?.(delivery, event);
    return delivery;
  }

  #begin(event) {
    const delivery = { id: event.jobId, state: 'waiting', at: new Date(event.at), runs: [], again: false };
    this.byId.set(delivery.id, delivery);
    for (const oldest of this.byId.keys()) {
      if (this.byId.size <= MAX_KEPT) break;
      this.byId.delete(oldest);
      this.dropped += 1;
    }
    return delivery;
  }
}

const MOVES = {
  added(delivery) {
    // A second time only where a person asked for a dead one to be tried again.
    delivery.again = delivery.runs.length > 0;
    settle(delivery, 'waiting');
  },
  delayed(delivery, event) {
    settle(delivery, 'delayed', { dueAt: later(event) });
  },
  active(delivery, event) {
    const run = { attempt: event.attempt, at: new Date(event.at), outcome: 'running', again: delivery.again };
    delivery.runs.push(run);
    delivery.again = false;
    settle(delivery, 'active');
  },
  completed(delivery, event) {
    endRun(delivery, event, 'delivered');
    settle(delivery, 'completed');
  },
  retrying(delivery, event) {
    endRun(delivery, event, 'failed').retryInMs = event.delayMs;
    settle(delivery, 'delayed', { dueAt: later(event) });
  },
  dead(delivery, event) {
    if (delivery.runs.at(-1)?.outcome === 'running' || event.error) endRun(delivery, event, 'failed');
    settle(delivery, 'dead', { reason: event.reason });
  },
  stalled(delivery, event) {
    endRun(delivery, event, 'lost').message = 'the process that delivered it is gone';
    settle(delivery, 'waiting');
  },
  released(delivery, event) {
    endRun(delivery, event, 'lost').message = 'the process that delivered it was stopped';
    settle(delivery, 'waiting');
  },
};

function settle(delivery, state, { dueAt, reason } = {}) {
  Object.assign(delivery, { state, dueAt, reason });
}

/** Ends the last run; makes one up where its beginning was not heard of. */
function endRun(delivery, event, outcome) {
  let run = delivery.runs.at(-1);
  if (run?.outcome !== 'running') {
    run = { attempt: event.attempt, at: new Date(event.at) };
    delivery.runs.push(run);
  }
  return Object.assign(run, {
    outcome,
    durationMs: event.durationUs === undefined ? undefined : event.durationUs / 1000,
    message: event.error?.message,
  });
}

function later(event) {
  return new Date(new Date(event.at).getTime() + event.delayMs);
}
