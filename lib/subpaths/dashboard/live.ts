import { EVENT_TYPES, type EventType } from '../../contract/engine.js';
import type { ListenOptions } from '../../events/event-reader.js';
import { numberOfEvent, type QueueEvent } from '../../events/queue-event.js';
import type { QueueEvents } from '../../events/queue-events.js';
import { checkJobName } from '../../job/job-id.js';
import { HttpFault, type RawResponse } from './http.js';
import type { Redactor } from './redaction.js';
import { micros, span } from './time-text.js';

/** An event as the page shows it. */
export interface LiveEvent {
  readonly queue: string;
  readonly type: QueueEvent['type'];
  readonly at: number;
  readonly jobId?: string;
  readonly name?: string;
  /** Further fields, on one line. */
  readonly note: string;
}

/** One message of the stream. */
export interface LiveBatch {
  readonly events: readonly LiveEvent[];
  /** How many events before these were not sent, because there were too many. */
  readonly skipped: number;
}

interface FollowedQueue {
  readonly name: string;
  readonly canSeeData: boolean;
}

/** Which events a reader gets. */
type Wanted = Pick<ListenOptions, 'types' | 'name'>;

const EVERY_MS = 250;
/** Maximum number of events that are sent each time, shared by the queues, so that a busy queue does not hide the others. */
const MAX_EVENTS = 200;
/** Each queue may send at least this many, even if there are many queues. */
const LEAST_SHARE = 10;
/** How often a stream says whether the events reach this process. A page that hears nothing for longer opens a new stream. */
const BEAT_MS = 15_000;
/** After this time the reader opens a new stream, so guards and rights are checked again. */
const MAX_MS = 60_000;
/** A reader that is this far behind is gone, or too slow. */
const MAX_PENDING_BYTES = 4_194_304;

/** The open streams of events. They end with the module, because an HTTP server waits for open responses. */
export class LiveStreams {
  private readonly open = new Set<() => void>();

  constructor(
    private readonly events: QueueEvents,
    private readonly redactor: Redactor,
    private readonly max: number,
  ) {}

  /**
   * @param since the last event that the reader saw of each queue: `email:123,media:45`.
   * @param type only events of this type.
   * @param name only events of jobs with this name.
   */
  start(
    response: RawResponse,
    queues: readonly FollowedQueue[],
    since: string | undefined,
    type: string | undefined,
    name: string | undefined,
  ): void {
    // Its reader may have left while the rights were checked.
    if (response.destroyed) return;
    if (this.open.size >= this.max)
      throw new HttpFault(
        503,
        'TOO_MANY_STREAMS',
        `${this.max} people follow the events already (maxStreams)`,
      );
    const last = readSince(since);
    const wanted: Wanted = { ...readType(type), ...(name && { name: checkJobName(name) }) };
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
    });
    if (response.req.method === 'HEAD') return void response.end();
    response.write('retry: 2000\n\n');
    const most = Math.max(LEAST_SHARE, Math.floor(MAX_EVENTS / queues.length));
    const followed = queues.map(
      (queue) => new LiveQueue(this.events, queue, wanted, most, last.get(queue.name)),
    );
    const flush = () => {
      const taken = followed.map((one) => one.take());
      const events = taken
        .flatMap((one) => one.events.map((event) => this.view(event, one.canSeeData)))
        .toSorted((a, b) => a.at - b.at);
      if (events.length === 0) return;
      const skipped = taken.reduce((sum, one) => sum + one.skipped, 0);
      const batch: LiveBatch = { events, skipped };
      const id = followed
        .flatMap((queue) => (queue.last === undefined ? [] : [`${queue.name}:${queue.last}`]))
        .join(',');
      response.write(`id: ${id}\ndata: ${JSON.stringify(batch)}\n\n`);
      if (response.writableLength > MAX_PENDING_BYTES) response.destroy();
    };
    let state: 'live' | 'lost' = 'live';
    const beat = () => response.write(`event: status\ndata: ${state}\n\n`);
    const status = this.events.status$.subscribe(({ state: next }) => {
      if (next === state || (next !== 'live' && next !== 'lost')) return;
      state = next;
      beat();
    });
    const timers = [
      setInterval(flush, EVERY_MS),
      setInterval(beat, BEAT_MS),
      setTimeout(() => {
        flush();
        // Without it, the page would take this for a lost connection.
        response.write('event: status\ndata: over\n\n');
        stop();
      }, MAX_MS),
    ];
    const stop = () => {
      if (!this.open.delete(stop)) return;
      timers.forEach(clearInterval);
      status.unsubscribe();
      for (const queue of followed) queue.close();
      response.end();
    };
    this.open.add(stop);
    response.on('close', stop);
  }

  close(): void {
    for (const stop of this.open) stop();
  }

  private view(event: QueueEvent, canSeeData: boolean): LiveEvent {
    const { queue, type, at, jobId, name } = event;
    return {
      queue,
      type,
      at: at.getTime(),
      ...(jobId !== undefined && { jobId }),
      ...(name !== undefined && { name }),
      note: this.note(event, canSeeData).slice(0, 300),
    };
  }

  private note(event: QueueEvent, canSeeData: boolean): string {
    const { redactor } = this;
    switch (event.type) {
      case 'completed':
        return micros(event.durationUs);
      case 'retrying':
        return `attempt ${event.attempt}, again in ${span(event.delayMs)}: ${redactor.text(event.error?.message ?? '')}`;
      case 'dead':
        return `${event.reason}: ${redactor.text(event.error?.message ?? '')}`;
      case 'delayed':
        return `for ${span(event.delayMs)}`;
      case 'removed':
      case 'cancelled':
        return redactor.text(event.reason);
      case 'breakerOpened':
        return `${event.limit ?? ''} for ${span(event.openForMs)}`.trim();
      case 'breakerClosed':
        return event.limit ?? '';
      case 'progress':
        return canSeeData ? this.json(event.progress) : '';
      case 'published':
        return canSeeData ? this.json(event.payload) : '';
      default:
        return '';
    }
  }

  private json(value: unknown): string {
    return this.redactor.show(JSON.stringify(value ?? null))?.json ?? '';
  }
}

/**
 * The events of one queue for one reader. When it has as many as are sent, it stops listening until they are sent: reading all events of
 * a fast queue to show a few would slow down the jobs of this process.
 */
class LiveQueue {
  readonly name: string;
  private events: QueueEvent[] = [];
  /** How many events were not kept since the last ones were taken. */
  private skipped = 0;
  private leave: (() => void) | undefined;

  constructor(
    private readonly source: QueueEvents,
    private readonly queue: FollowedQueue,
    private readonly wanted: Wanted,
    private readonly most: number,
    /** Number of the last event received. */
    public last: number | undefined,
  ) {
    this.name = queue.name;
    this.listen(last);
  }

  /** Takes the events so far, the oldest first. */
  take(): { readonly events: readonly QueueEvent[]; readonly skipped: number; readonly canSeeData: boolean } {
    const taken = { events: this.events, skipped: this.skipped, canSeeData: this.queue.canSeeData };
    if (taken.events.length > 0) {
      this.events = [];
      this.skipped = 0;
    }
    if (!this.leave) this.listen();
    return taken;
  }

  close(): void {
    this.leave?.();
  }

  private listen(since?: number): void {
    const options = { ...this.wanted, ...(since !== undefined && { since }) };
    this.leave = this.source.reader.listen(this.name, options, (event) => this.hear(event));
  }

  private hear(event: QueueEvent): void {
    const before = this.last;
    this.last = numberOfEvent(event.eventId)!;
    const isFull = this.events.length === this.most;
    if (!isFull) this.events.push(event);
    if (this.wanted.types || this.wanted.name) {
      // It continues to listen. Numbers also count other events, so only received events can be counted.
      this.skipped += isFull ? 1 : 0;
      return;
    }
    if (before !== undefined) this.skipped += Math.max(0, this.last - before - 1);
    if (this.events.length < this.most) return;
    this.leave?.();
    this.leave = undefined;
  }
}

function readType(type: string | undefined): Pick<Wanted, 'types'> {
  if (type === undefined || type === '') return {};
  if (!EVENT_TYPES.includes(type as EventType))
    throw new HttpFault(400, 'BAD_EVENT_TYPE', `type is one of ${EVENT_TYPES.join(', ')}`);
  return { types: new Set([type as EventType]) };
}

function readSince(text: string | undefined): Map<string, number> {
  const last = new Map<string, number>();
  for (const part of text ? text.split(',') : []) {
    const [, queue, id] = /^([A-Za-z0-9._-]{1,128}):(.*)$/.exec(part) ?? [];
    const number = numberOfEvent(id);
    if (queue === undefined || number === undefined)
      throw new HttpFault(400, 'BAD_EVENT_ID', 'last-event-id is queue:id, …');
    last.set(queue, number);
  }
  return last;
}
