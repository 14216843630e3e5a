import type { AbortReason } from '../../errors.js';
import type { JobHeaders } from '../../job/headers.js';
import type { Job } from '../../job/job.js';
import { DEFAULT_MAX_PAYLOAD_BYTES } from '../../job/payload.js';
import { integer, refuse } from '../../options/check.js';
import { DEFAULTS } from '../../options/job-options.js';
import { Run, type Note } from '../../worker/run.js';

/** Options of `createTestJob`. */
export interface TestJobOptions<Data> {
  /** Data of the job. @default undefined */
  readonly data?: Data;
  /** Id of the job. @default 'test-job' */
  readonly id?: string;
  /** Name of the job. @default 'test' */
  readonly name?: string;
  /** Name of the queue. @default 'test' */
  readonly queue?: string;
  /** Which attempt this is, from 1. @default 1 */
  readonly attempt?: number;
  /** Maximum number of attempts, from 1. @default 3 */
  readonly attempts?: number;
  /** When the job was added. @default now */
  readonly createdAt?: Date;
  /** Group of the job. @default none */
  readonly group?: string;
  /** Headers of the job. @default none */
  readonly headers?: JobHeaders;
}

/** A job that records the calls of its handler (progress, log, …) and can be aborted. */
export interface TestJob<Data = unknown> extends Job<Data, any> {
  /** The values passed to `progress()`, after a JSON round trip. */
  readonly progressed: readonly unknown[];
  /** The lines passed to `log()`. */
  readonly logged: readonly string[];
  /** The values passed to `update()`, after a JSON round trip. */
  readonly updated: readonly unknown[];
  /** The sum of what `charge()` added to the cost of the job. */
  readonly charged: number;
  /** Aborts `signal` with a `JobAbortedError` that has this reason, by default `cancelled`. */
  abort(reason?: AbortReason, detail?: string): void;
  /** Sets `isDraining` to true, as if the process were stopping. */
  drain(): void;
}

/**
 * A job for a unit test that calls a handler method directly, without a module or queue. To run a handler with its schema, guards and
 * pipes, use `QueueTesting.run`.
 *
 * @throws {InvalidOptionError} for invalid attempts
 * @example
 * const job = createTestJob({ data: { to: 'ada@example.com' }, attempt: 2 });
 * await new EmailProcessor(mailer).welcome(job);
 * expect(job.progressed).toEqual([{ sent: 1 }]);
 */
export function createTestJob<Data = unknown>(options: TestJobOptions<Data> = {}): TestJob<Data> {
  const {
    id = 'test-job',
    name = 'test',
    queue = 'test',
    attempt = 1,
    attempts = DEFAULTS.attempts,
  } = options;
  const { data, createdAt = new Date(), group, headers } = options;
  const count = integer(1, Number.MAX_SAFE_INTEGER);
  count(attempt, 'createTestJob().attempt', refuse);
  count(attempts, 'createTestJob().attempts', refuse);
  let charged = 0;
  const progressed: unknown[] = [];
  const logged: string[] = [];
  const updated: unknown[] = [];
  const notes = {
    queue,
    maxPayloadBytes: DEFAULT_MAX_PAYLOAD_BYTES,
    payloads: 'strict' as const,
    isDraining: false,
    mayWait: false,
    waits: () => undefined,
    now: () => Date.now(),
    charge: async (_: Run, more: number) => void (charged += more),
    note: async (_: Run, { progress, log, data: changed }: Note) => {
      if (changed !== undefined) updated.push(JSON.parse(changed));
      if (progress !== undefined) progressed.push(JSON.parse(progress));
      if (log !== undefined) logged.push(log);
    },
  };
  const run = new Run(
    { id, failed: attempt - 1, stalls: 0 },
    {
      name,
      data,
      createdAt: createdAt.getTime(),
      options: { ...(group !== undefined && { group }), ...(headers && { headers }) },
    },
    { ...DEFAULTS, attempts },
    { label: 'the test', run: () => undefined },
    notes,
  );
  const abort = run.abort.bind(run);
  const withCharge = Object.defineProperty(run, 'charged', { get: () => charged });
  return Object.assign(withCharge as Run & { readonly data: Data; readonly charged: number }, {
    progressed,
    logged,
    drain: () => void (notes.isDraining = true),
    updated,
    abort: (reason: AbortReason = 'cancelled', detail = 'the test aborts it') => abort(reason, detail),
  });
}
