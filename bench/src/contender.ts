/** What a job of the suite carries; without a note about 60 bytes of JSON. */
export interface Payload {
  readonly n: number;
  readonly to: string;
  readonly template: string;
  readonly note?: string;
}

export function payload(n: number): Payload {
  return { n, to: `user${n}@example.com`, template: 'welcome' };
}

/** The same with a note that makes its JSON `bytes` long. */
export function payloadOf(bytes: number, n: number): Payload {
  const bare = { ...payload(n), note: '' };
  return { ...bare, note: 'x'.repeat(bytes - JSON.stringify(bare).length) };
}

/** One system under measurement: how to open it, and what must be known to read its figures fairly. */
export interface Contender {
  /** What `--contenders` takes, and the head of its column. */
  readonly name: string;
  /** Packages whose versions belong into the report. */
  readonly packages: readonly string[];
  /** Its guarantees and settings, printed under the table. */
  readonly terms: readonly string[];
  open(options: OpenOptions): Promise<Session>;
}

export interface OpenOptions {
  readonly url: string;
  readonly queues: readonly string[];
  /** Three attempts with exponential backoff, said the way the contender wants it said. @default its own default */
  readonly retries?: boolean;
  /** `replicated`: an add resolves once a replica has the job. @default its own default */
  readonly durability?: 'local' | 'replicated';
  /** Present: the process also works off these queues. Absent: it only adds. */
  readonly work?: Work;
}

export interface Work {
  /** Jobs run at once, per queue. */
  readonly concurrency: number;
  readonly handle: (data: Payload) => void;
}

/** A running application of a contender. */
export interface Session {
  add(queue: string, data: Payload): Promise<unknown>;
  /** One call with at most 1,000 jobs. */
  addBulk(queue: string, data: readonly Payload[]): Promise<unknown>;
  /** Jobs that have not ended: waiting and running. */
  outstanding(queue: string): Promise<number>;
  close(): Promise<void>;
}
