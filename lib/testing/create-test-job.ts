import type { AbortReason } from '../errors.js';
import type { Job } from '../job/job.js';
import { DEFAULT_MAX_PAYLOAD_BYTES } from '../job/payload.js';
import { DEFAULTS } from '../options/job-policy.js';
import { Run } from '../worker/run.js';

/** What `createTestJob` makes a job of; whatever is not given has a value all the same. */
export interface TestJobOptions<Data> {
  /** What the handler gets. @default undefined */
  readonly data?: Data;
  /** Its id. @default 'test-job' */
  readonly id?: string;
  /** Which handler it is for. @default 'test' */
  readonly name?: string;
  /** Which queue it says it is of. @default 'test' */
  readonly queue?: string;
  /** Which try this is, from 1. @default 1 */
  readonly attempt?: number;
  /** How many tries there are in all, from 1. @default 3 */
  readonly attempts?: number;
  /** When it says it was added. @default now */
  readonly createdAt?: Date;
}

/** A job that keeps what its handler says, and can be told to end. */
export interface TestJob<Data = unknown> extends Job<Data> {
  /** What was given to `progress()`, as JSON gives it back. */
  readonly progressed: readonly unknown[];
  /** The lines given to `log()`. */
  readonly logged: readonly string[];
  /** Aborts `signal`, for a `JobAbortedError` of this reason; by default `cancelled`. */
  abort(reason?: AbortReason, detail?: string): void;
}

/**
 * A job for a plain unit test, which calls a handler as the method it is: no module, no queue. To run a handler with its schema, guards
 * and pipes, use `QueueTesting.run`.
 *
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
  const { data, createdAt = new Date() } = options;
  const progressed: unknown[] = [];
  const logged: string[] = [];
  const run = new Run(
    id,
    attempt,
    0,
    { name, data, createdAt: createdAt.getTime(), options: {} },
    { ...DEFAULTS, attempts },
    {
      queue,
      maxPayloadBytes: DEFAULT_MAX_PAYLOAD_BYTES,
      note: async (_, { progress, log }) => {
        if (progress !== undefined) progressed.push(JSON.parse(progress));
        if (log !== undefined) logged.push(log);
      },
    },
  );
  const abort = run.abort.bind(run);
  return Object.assign(run as Run & { readonly data: Data }, {
    progressed,
    logged,
    abort: (reason: AbortReason = 'cancelled', detail = 'the test aborts it') => abort(reason, detail),
  });
}
