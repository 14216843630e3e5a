import type { StoredJob } from '../../contract/admin-verbs.js';
import type { QueueEngine } from '../../contract/engine.js';
import { logByAttempt } from '../../job/job-log.js';
import { checkJobId } from '../../job/job-id.js';
import { dataTextOf, decodeBody } from '../../job/job-record.js';
import { JsonText } from '../../job/payload.js';
import {
  resolveModuleOptions,
  resolveQueueOptions,
  type ResolvedQueueOptions,
} from '../../options/module-options.js';
import { listDead, toDeadJob, type DeadJob, type DeadListOptions } from '../../producer/dead-jobs.js';
import {
  checkJobList,
  encodeCursor,
  listJobs,
  type JobListOptions,
  type JobPage,
} from '../../producer/job-list.js';
import { startTimes, toSnapshot, type FailedAttempt, type JobSnapshot } from '../../producer/job-snapshot.js';
import type { Inspector } from '../inspector.js';
import type { Cell } from './table.js';

/**
 * A job as the command shows it. `attempts` is null unless the job has this option: the default of its queue is in the code of the
 * application, which the command does not know.
 */
export type ShownJob = Omit<JobSnapshot, 'attempts'> & { readonly attempts: number | null };

/** A dead job as the command shows it, with the same `attempts`. */
export type ShownDeadJob = Omit<DeadJob, 'attempts'> & Pick<ShownJob, 'attempts'>;

/** A page of jobs. */
export async function jobsOf(
  { producer: { engine } }: Inspector,
  queue: string,
  options: JobListOptions,
): Promise<JobPage<ShownJob>> {
  const page = await listJobs(engine, queue, checkJobList(options));
  return {
    jobs: await shown(engine, queue, page.jobs),
    cursor: encodeCursor(page.next),
    examined: page.examined,
  };
}

/** One job; null if there is none with this id. */
export async function jobOf(
  { producer: { engine } }: Inspector,
  queue: string,
  id: string,
): Promise<ShownJob | null> {
  const stored = await engine.admin.get(queue, checkJobId(id));
  return stored && (await shown(engine, queue, [stored]))[0]!;
}

/** A page of dead jobs. `backward`: the latest first. */
export async function deadJobsOf(
  { producer: { engine } }: Inspector,
  queue: string,
  options: DeadListOptions,
  backward: boolean,
): Promise<{ readonly jobs: readonly ShownDeadJob[]; readonly cursor: string | null }> {
  const page = await listDead(engine, queue, options, backward);
  const defaults = defaultsOf(queue);
  const jobs = page.jobs.map((job) => {
    const dead = toDeadJob(job, defaults);
    return { ...dead, data: withDigits(dead.data, job.body), attempts: ownAttempts(job) };
  });
  return { jobs, cursor: encodeCursor(page.next) };
}

async function shown(engine: QueueEngine, queue: string, jobs: readonly StoredJob[]): Promise<ShownJob[]> {
  const defaults = defaultsOf(queue);
  const starts = await startTimes(engine, queue, jobs);
  return jobs.map((job) => {
    const snapshot = toSnapshot(job, defaults, starts);
    return { ...snapshot, data: withDigits(snapshot.data, job.body), attempts: ownAttempts(job) };
  });
}

/** Numbers are shown as they are stored, also with `--json`. */
function withDigits(data: unknown, body: string): unknown {
  return data === undefined || typeof data === 'string' ? data : new JsonText(dataTextOf(body));
}

function defaultsOf(queue: string): ResolvedQueueOptions {
  return resolveQueueOptions({ name: queue }, resolveModuleOptions({}));
}

function ownAttempts({ body }: StoredJob): number | null {
  return decodeBody(body)?.options.attempts ?? null;
}

export function detailOf({ state, dueAt, failure, worker, cancelReason }: ShownJob): string {
  switch (state) {
    case 'delayed':
      return dueAt ? `due ${dueAt.toISOString()}` : 'waits for the end of the job with its unique key';
    case 'active':
      return `${worker ?? ''}${cancelReason === null ? '' : `, asked to stop: ${cancelReason}`}`;
    case 'dead':
      return `${failure?.reason ?? ''}: ${failure?.message ?? ''}`;
    case 'cancelled':
      return cancelReason ?? '';
    default:
      return failure ? `last error: ${failure.message}` : '';
  }
}

const OWN_ROWS = new Set(['failures', 'logs']);

/** The fields of a job that have a value, except its attempts. */
export function fieldRows(job: ShownJob): Cell[][] {
  return Object.entries(job).flatMap(([key, value]): Cell[][] => {
    if (value === null || value === undefined || OWN_ROWS.has(key)) return [];
    if (key === 'headers' && Object.keys(job.headers).length === 0) return [];
    return key === 'failure'
      ? failureRows(value as NonNullable<ShownJob['failure']>)
      : [[key, valueText(value)]];
  });
}

/** Each line of the message and of the stack is a row. */
function failureRows({ name, message, stack = '', attempt, at, reason }: NonNullable<ShownJob['failure']>) {
  const [first = '', ...more] = `${name}: ${message}`.split('\n');
  const frames = stack
    .slice(Math.max(0, stack.search(/\n\s+at /)))
    .split('\n')
    .filter(isFrame);
  const when = `attempt ${attempt}, ${at.toISOString()}${reason === undefined ? '' : `, ${reason}`}`;
  return [
    ['failed', when],
    ['failure', first],
    ...[...more, ...frames.map((frame) => `    ${frame.trim()}`)].map((line): Cell[] => ['', line]),
  ];
}

function isFrame(line: string): boolean {
  return /^\s+at /.test(line);
}

/** The last failed attempts, and each attempt with log lines. */
export function attemptRows({ attempt: current, state, failures, logs }: ShownJob): Cell[][] {
  const logged = logByAttempt(logs);
  const rows: Cell[][] = [];
  const attempts = new Set([...logged, ...failures].map(({ attempt }) => attempt));
  for (const number of [...attempts].toSorted((a, b) => (a ?? 0) - (b ?? 0))) {
    const failure = failures.find(({ attempt }) => attempt === number);
    const how = failure ? failureText(failure) : number === current ? state : '';
    rows.push([`attempt ${number ?? 'unknown'}`, how]);
    const lines = logged.flatMap(({ attempt, lines }) => (attempt === number ? lines : []));
    for (const [at, line] of lines.entries()) rows.push([at === 0 ? '  log' : '', line]);
  }
  return rows;
}

function failureText({ at, durationUs, worker, name, message }: FailedAttempt): string {
  return `failed ${at.toISOString()} after ${(durationUs / 1_000).toFixed(1)} ms in ${worker}: ${name}: ${message.split('\n')[0]}`;
}

function valueText(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (value instanceof JsonText) return value.text;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
