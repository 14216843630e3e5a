import { inTime, within } from '../contract/retry.js';
import { InvalidOptionError, RedisUnavailableError, type Applied } from '../errors.js';
import { MAX_TIMER_MS } from '../job/duration.js';
import { boolean, copyFields, duration, refuse } from '../options/check.js';
import { checkSignal, JOB_OPTION_NAMES, readRetention, type JobOptions } from '../options/job-options.js';
import type { DetailedWaitOptions, WaitOptions } from './add-arguments.js';
import type { AddResult } from './add-result.js';
import type { MadeJob } from './job-maker.js';

/** A subscription to the end of a job. It starts before the job is added, so that the end cannot be missed. */
export interface EndWait {
  readonly ready: Promise<void>;
  /** `waitMs` is the whole `waitTimeout`; `timeoutMs` is what remains of it. */
  outcome(
    timeoutMs: number,
    options: { readonly duplicate: boolean; readonly waitMs: number },
  ): Promise<unknown>;
  cancel(): void;
}

export type PrepareWait = (queue: string, id: string) => EndWait;

const DEFAULT_WAIT = '30s';
const NAMES = [...JOB_OPTION_NAMES, 'waitTimeout', 'detail'];
/** Minimum retention of a job that a caller waits for, so that its result can be read if the event is lost. */
const WAITED_RETENTION = 60_000;
const PATH = 'addAndWait().options';
/** The wait for room in a full queue ends this long before the whole wait, so that a last try is answered. At most a tenth of it. */
const LAST_TRY_MS = 100;

/**
 * Checks the options of `addAndWait` and separates those of the wait from those of the job.
 *
 * @param policyMs the retention of jobs that set none.
 * @throws {InvalidOptionError}
 */
export function checkWait(options: WaitOptions | DetailedWaitOptions, policyMs: number) {
  const copied = copyFields(options, PATH, NAMES) as WaitOptions;
  const { waitTimeout = DEFAULT_WAIT, signal, detail = false, ...rest } = copied;
  for (const option of ['unique', 'debounce', 'throttle', 'aggregate'] as const)
    if (rest[option] !== undefined)
      throw new InvalidOptionError(
        `${PATH}.${option}`,
        'left out: the caller waits for the job that it adds; use the option id',
        rest[option],
      );
  const waitMs = duration(1)(waitTimeout, `${PATH}.waitTimeout`, refuse)!;
  if (signal !== undefined) checkSignal(signal, `${PATH}.signal`);
  const isDetailed = boolean(detail, `${PATH}.detail`, refuse)!;
  const { retention: given = 0 } = rest;
  const retention = readRetention(given, `${PATH}.retention`, refuse)!;
  const { retentionMs = 0, cancelledRetentionMs: cancelled } = retention;
  const completed = Math.max(retentionMs, policyMs, WAITED_RETENTION);
  const job: JobOptions = {
    ...rest,
    ...(signal && { signal }),
    retention: { completed, ...(cancelled !== undefined && { cancelled }) },
  };
  return { waitMs, signal, isDetailed, job };
}

/** Adds the job and waits until it ends, the time is over or the signal aborts. The last two do not stop the job. */
export async function addAndWait(
  wait: EndWait,
  made: MadeJob,
  add: (job: MadeJob) => Promise<AddResult>,
  { waitMs, signal, isDetailed }: ReturnType<typeof checkWait>,
  onAdded?: (added: AddResult) => void,
): Promise<unknown> {
  const until = performance.now() + waitMs;
  const abort = abortOf(signal);
  try {
    await abort.orEnd(within(Math.min(waitMs, MAX_TIMER_MS), wait.ready));
    if (performance.now() >= until) throw notInTime('no');
    const roomUntil = until - Math.min(LAST_TRY_MS, waitMs / 10);
    const added = await abort.orEnd(before(until, add({ ...made, roomUntil })));
    onAdded?.(added);
    const leftMs = Math.max(0, Math.ceil(until - performance.now()));
    const result = await abort.orEnd(wait.outcome(leftMs, { duplicate: added.duplicate, waitMs }));
    return isDetailed ? { ...added, result } : result;
  } finally {
    abort.forget();
    wait.cancel();
  }
}

/** Lets the signal of the caller end a wait early. */
function abortOf(signal: AbortSignal | undefined) {
  if (!signal) return { orEnd: <T>(promise: Promise<T>) => promise, forget: () => undefined };
  signal.throwIfAborted();
  let tell = () => {};
  const aborted = new Promise<never>((_, reject) => (tell = () => reject(signal.reason as Error)));
  // The signal may abort between two waits, when nothing handles the rejection.
  aborted.catch(() => undefined);
  const ends = endsOf(signal);
  ends.add(tell);
  return {
    orEnd: <T>(promise: Promise<T>) => Promise.race([promise, aborted]),
    forget: () => ends.delete(tell),
  };
}

const endsBySignal = new WeakMap<AbortSignal, Set<() => void>>();

/** Callbacks for when the signal aborts. The signal has one listener for all waits, because Node warns if it has more than ten. */
function endsOf(signal: AbortSignal): Set<() => void> {
  const known = endsBySignal.get(signal);
  if (known) return known;
  const ends = new Set<() => void>();
  endsBySignal.set(signal, ends);
  signal.addEventListener('abort', () => ends.forEach((end) => end()), { once: true });
  return ends;
}

/** The result of the add. Rejects when the time of the wait is over. */
function before<T>(until: number, added: Promise<T>): Promise<T> {
  const left = Math.min(Math.max(0, until - performance.now()), MAX_TIMER_MS);
  return inTime(left, added, () => notInTime('unknown'));
}

function notInTime(applied: Applied): RedisUnavailableError {
  return new RedisUnavailableError('addAndWait', applied, 'Redis did not answer within waitTimeout');
}
