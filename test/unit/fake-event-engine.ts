import type { AdminVerbs, StoredJob } from '#lib/contract/admin-verbs.js';
import type { LinkEvent, QueueEngine, QueueEventBatch, RawEvent } from '#lib/contract/engine.js';

type Verb = 'openEvents' | 'lastEvent' | 'readEvents' | 'get';

/**
 * The event side of an engine, on arrays: streams that are numbered, trimmed and flushed, reads that block, a
 * connection that breaks. Blocks end by `setTimeout`, so that tests run on virtual time.
 */
export class FakeEventEngine
  implements
    Pick<
      QueueEngine,
      'openEvents' | 'closeEvents' | 'lastEvent' | 'readEvents' | 'interruptEvents' | 'onLink'
    >,
    Pick<AdminVerbs, 'get' | 'cancelled'>
{
  /** Every call in order: `openEvents`, `lastEvent email`, `readEvents email>3 1000`. */
  readonly calls: string[] = [];
  readonly jobs = new Map<string, Partial<StoredJob>>();
  /** Records of cancelled jobs that are still kept. */
  readonly cancellations = new Map<string, { readonly reason: string; readonly agoMs: number }>();
  /** Verbs that reject, and their errors. */
  readonly failing = new Map<Verb, unknown>();
  /** Verbs that answer only when the promise resolves. */
  readonly held = new Map<Verb, Promise<unknown>>();
  connections = 0;
  mostConnections = 0;
  /** The most entries that a read returns. */
  chunk = 100;

  private readonly streams = new Map<string, { last: number; batches: QueueEventBatch[] }>();
  private readonly links = new Set<(event: LinkEvent) => void>();
  private readonly blocked = new Set<{
    wake: () => void;
    end: () => void;
    reject: (error: unknown) => void;
  }>();

  /** No test here asks whether a queue is drained. */
  readonly admin = {} as AdminVerbs;

  now(): number {
    return Date.now();
  }

  count(verb: string): number {
    return this.calls.filter((call) => call.split(' ')[0] === verb).length;
  }

  /** One entry of the stream, as one script call writes it. */
  push(queue: string, ...events: (Partial<RawEvent> & Pick<RawEvent, 'type'>)[]): void {
    this.append(queue, events, events.length);
  }

  /** An entry whose first events are of moves that did not happen. They have numbers, and are left out. */
  pushUntold(queue: string, untold: number, told: number): void {
    this.append(
      queue,
      Array.from({ length: told + untold }, () => ({ type: 'added' })),
      told,
    );
  }

  private append(
    queue: string,
    events: readonly (Partial<RawEvent> & Pick<RawEvent, 'type'>)[],
    told: number,
  ): void {
    const stream = this.stream(queue);
    const first = stream.last + 1;
    const raw = events.map((event) => ({
      id: 'job',
      name: 'name',
      attempt: 1,
      durationUs: 0,
      delayMs: 0,
      reason: '',
      error: null,
      progress: null,
      ...event,
      number: ++stream.last,
    }));
    stream.batches.push({
      queue,
      first,
      last: stream.last,
      at: Date.now(),
      events: raw.slice(raw.length - told),
    });
    for (const read of this.blocked) read.wake();
  }

  /** Removes all events up to this number. */
  trim(queue: string, upTo: number): void {
    const stream = this.stream(queue);
    stream.batches = stream.batches.filter((batch) => batch.last > upTo);
  }

  flushAll(): void {
    this.streams.clear();
  }

  /** A failover to a replica that lacks the last `lost` entries, of one event each. Returns the last number left. */
  rollBack(queue: string, lost: number): number {
    const stream = this.stream(queue);
    stream.batches.splice(-lost);
    return (stream.last -= lost);
  }

  /** The connection breaks: running calls fail, and so do new ones, until `heal`. */
  cut(error: Error = new Error('socket closed')): void {
    for (const verb of ['openEvents', 'lastEvent', 'readEvents', 'get'] as const)
      this.failing.set(verb, error);
    for (const read of this.blocked) read.reject(error);
    this.link({ role: 'events', state: 'down', error });
  }

  heal(): void {
    this.failing.clear();
    this.link({ role: 'events', state: 'up' });
  }

  link(event: LinkEvent): void {
    for (const listener of this.links) listener(event);
  }

  get linkListeners(): number {
    return this.links.size;
  }

  onLink(listener: (event: LinkEvent) => void): () => void {
    this.links.add(listener);
    return () => this.links.delete(listener);
  }

  async openEvents(): Promise<void> {
    await this.enter('openEvents');
    this.connections += 1;
    this.mostConnections = Math.max(this.mostConnections, this.connections);
  }

  async closeEvents(): Promise<void> {
    this.calls.push('closeEvents');
    this.connections = 0;
    for (const read of this.blocked) read.reject(new Error('closed'));
  }

  async lastEvent(queue: string): Promise<number> {
    await this.enter('lastEvent', queue);
    return this.stream(queue).last;
  }

  async get(queue: string, id: string): Promise<StoredJob | null> {
    await this.enter('get', `${queue}/${id}`);
    const job = this.jobs.get(id);
    return job ? ({ id, failure: null, result: null, resultFault: null, ...job } as StoredJob) : null;
  }

  async cancelled(
    _: string,
    id: string,
  ): Promise<{ readonly reason: string; readonly agoMs: number } | null> {
    return this.cancellations.get(id) ?? null;
  }

  async readEvents(after: ReadonlyMap<string, number>, blockMs: number): Promise<readonly QueueEventBatch[]> {
    if (blockMs < 1) throw new Error('a block of 0 would never end');
    await this.enter(
      'readEvents',
      `${[...after].map(([queue, number]) => `${queue}>${number}`).join(',')} ${blockMs}`,
    );
    const found = this.find(after);
    if (found.length > 0) return found;
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer);
        this.blocked.delete(read);
      };
      const timer = setTimeout(() => (done(), resolve([])), blockMs);
      const read = {
        wake: () => {
          const news = this.find(after);
          if (news.length === 0) return;
          done();
          resolve(news);
        },
        reject: (error: unknown) => (done(), reject(error)),
        end: () => (done(), resolve([])),
      };
      this.blocked.add(read);
    });
  }

  interruptEvents(): void {
    this.calls.push('interruptEvents');
    for (const read of this.blocked) read.end();
  }

  private find(after: ReadonlyMap<string, number>): QueueEventBatch[] {
    return [...after].flatMap(([queue, number]) =>
      this.stream(queue)
        .batches.filter((batch) => batch.last > number)
        .slice(0, this.chunk),
    );
  }

  private async enter(verb: Verb, detail = ''): Promise<void> {
    this.calls.push(`${verb} ${detail}`.trim());
    await this.held.get(verb);
    if (this.failing.has(verb)) throw this.failing.get(verb);
  }

  private stream(queue: string): { last: number; batches: QueueEventBatch[] } {
    const stream = this.streams.get(queue) ?? { last: 0, batches: [] };
    this.streams.set(queue, stream);
    return stream;
  }
}
