import type { Subscription } from 'rxjs';
import type { QueueEvent } from '../../events/queue-event.js';
import type { QueueEvents } from '../../events/queue-events.js';
import { HttpFault, type RawResponse } from './http.js';
import type { Redactor } from './redaction.js';

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
  /** How many further events there were in this quarter of a second. */
  readonly skipped: number;
}

const EVERY_MS = 250;
const MAX_EVENTS = 200;
const BEAT_MS = 15_000;
/** After this time the reader reconnects, so guards and rights are checked again. */
const MAX_MS = 600_000;
/** A reader that is this far behind is gone, or will never catch up. */
const MAX_PENDING_BYTES = 4_194_304;

/** The open streams of events. They end with the module, because an HTTP server waits for open responses. */
export class LiveStreams {
  private readonly open = new Set<() => void>();

  constructor(
    private readonly events: QueueEvents,
    private readonly redactor: Redactor,
    private readonly max: number,
  ) {}

  /** @param since the last event that the reader saw of each queue: `email:123,media:45`. */
  start(
    response: RawResponse,
    queues: readonly { readonly name: string; readonly canSeeData: boolean }[],
    since: string | undefined,
  ): void {
    if (this.open.size >= this.max)
      throw new HttpFault(
        503,
        'TOO_MANY_STREAMS',
        `${this.max} people follow the events already (maxStreams)`,
      );
    const last = readSince(since);
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
    });
    response.write('retry: 2000\n\n');
    let events: LiveEvent[] = [];
    let skipped = 0;
    const flush = () => {
      if (events.length === 0) return;
      const batch: LiveBatch = { events, skipped };
      const id = [...last].map(([queue, event]) => `${queue}:${event}`).join(',');
      response.write(`id: ${id}\ndata: ${JSON.stringify(batch)}\n\n`);
      events = [];
      skipped = 0;
      if (response.writableLength > MAX_PENDING_BYTES) response.destroy();
    };
    const timers = [
      setInterval(flush, EVERY_MS),
      setInterval(() => response.write(': still here\n\n'), BEAT_MS),
      setTimeout(() => stop(), MAX_MS),
    ];
    const subscriptions: Subscription[] = queues.map(({ name, canSeeData }) => {
      const from = last.get(name);
      return this.events.of(name, from === undefined ? {} : { since: from }).subscribe((event) => {
        last.set(name, event.eventId);
        if (events.length < MAX_EVENTS) events.push(this.view(event, canSeeData));
        else skipped += 1;
      });
    });
    const stop = () => {
      if (!this.open.delete(stop)) return;
      timers.forEach(clearInterval);
      for (const one of subscriptions) one.unsubscribe();
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
      ...(jobId !== undefined && { jobId, name }),
      note: this.note(event, canSeeData).slice(0, 300),
    };
  }

  private note(event: QueueEvent, canSeeData: boolean): string {
    const { redactor } = this;
    switch (event.type) {
      case 'completed':
        return `${(event.durationUs / 1_000).toFixed(1)} ms`;
      case 'retrying':
        return `attempt ${event.attempt}, again in ${event.delayMs} ms: ${redactor.text(event.error?.message ?? '')}`;
      case 'dead':
        return `${event.reason}: ${redactor.text(event.error?.message ?? '')}`;
      case 'delayed':
        return `for ${event.delayMs} ms`;
      case 'removed':
      case 'cancelled':
        return redactor.text(event.reason);
      case 'progress':
        return canSeeData ? (redactor.show(JSON.stringify(event.progress ?? null))?.json ?? '') : '';
      default:
        return '';
    }
  }
}

function readSince(text: string | undefined): Map<string, string> {
  const last = new Map<string, string>();
  for (const part of text ? text.split(',') : []) {
    const [, queue, id] = /^([A-Za-z0-9._-]{1,128}):(\d{1,16})$/.exec(part) ?? [];
    if (queue === undefined) throw new HttpFault(400, 'BAD_EVENT_ID', 'last-event-id is queue:id, …');
    last.set(queue, id!);
  }
  return last;
}
