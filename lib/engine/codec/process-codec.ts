import {
  ORDER_KINDS,
  type PoolRecord,
  type ProcessOrder,
  type ProcessRecord,
  type ProcessState,
  type RunningJob,
} from '../../contract/process-verbs.js';

/** Maximum size in bytes of the record of one process, so that the records of all processes can be read. */
export const MAX_RECORD_BYTES = 65_536;

/** Encodes the record. If it is too large, jobs are left out first, then pools, then the names of their queues. */
export function encodeProcess(record: ProcessRecord): string {
  for (let jobs = Infinity; jobs >= 1; jobs = Math.floor(Math.min(jobs, longest(record)) / 2)) {
    const text = withJobs(record, jobs);
    if (fits(text)) return text;
  }
  return withPools(record, true) ?? withPools(record, false)!;
}

/** As many pools as fit, without jobs, and the names of all other queues. Undefined if the names do not fit. */
function withPools(record: ProcessRecord, isNamed: boolean): string | undefined {
  const all = record.pools;
  for (let kept = all.length; ; kept = Math.floor(kept / 2)) {
    const left = all.slice(kept);
    const more = isNamed && left.length > 0 ? { moreQueues: left.flatMap(({ queues }) => queues) } : {};
    const text = withJobs({ ...record, pools: all.slice(0, kept), morePools: left.length, ...more }, 0);
    if (fits(text) || (kept === 0 && !isNamed)) return text;
    if (kept === 0) return undefined;
  }
}

function longest({ pools }: ProcessRecord): number {
  return Math.max(0, ...pools.map(({ jobs }) => jobs.length));
}

function withJobs(record: ProcessRecord, most: number): string {
  const pools = record.pools.map((pool) => ({ ...pool, jobs: pool.jobs.slice(0, most) }));
  return JSON.stringify({ ...record, pools });
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) <= MAX_RECORD_BYTES;
}

/**
 * Reads a record. Null if the text is not a record. A newer version may have written it: unknown fields are ignored, and unknown
 * values are shown as they are.
 */
export function decodeProcess(text: string): ProcessRecord | null {
  try {
    return readProcess(JSON.parse(text));
  } catch {
    return null;
  }
}

/** @throws {TypeError} if a field has the wrong type */
function readProcess(value: unknown): ProcessRecord {
  const { id, host, pid, versions, startedAt, role, state, pools, morePools, moreQueues, blockedMs, obeyed } =
    fieldsOf(value);
  const { godwit, node, server } = fieldsOf(versions);
  return {
    id: text(id),
    host: text(host),
    pid: count(pid),
    versions: { godwit: text(godwit), node: text(node), server: server === null ? null : text(server) },
    startedAt: count(startedAt),
    role: text(role) as ProcessRecord['role'],
    state: text(state) as ProcessState,
    pools: list(pools).map(readPool),
    morePools: count(morePools),
    ...(moreQueues !== undefined && { moreQueues: list(moreQueues).map(text) }),
    ...(blockedMs !== undefined && { blockedMs: count(blockedMs) }),
    obeyed: obeyed === undefined ? null : text(obeyed),
  };
}

/** Reads the orders to a process. Orders that only a newer version knows are left out. */
export function decodeOrders(lines: string): ProcessOrder[] {
  return lines.split('\n').flatMap((line) => {
    const space = line.indexOf(' ');
    if (space < 0) return [];
    const { kind, queue, by } = fieldsOf(JSON.parse(line.slice(space + 1)));
    const known = ORDER_KINDS.find((one) => one === kind);
    const of = queue === null ? null : text(queue);
    return known ? [{ id: line.slice(0, space), kind: known, queue: of, by: text(by) }] : [];
  });
}

function readPool(value: unknown): PoolRecord {
  const { queues, paused, quiet = [], concurrency, workers, running, jobs } = fieldsOf(value);
  return {
    queues: list(queues).map(text),
    paused: list(paused).map(text),
    quiet: list(quiet).map(text),
    concurrency: count(concurrency),
    workers: list(workers).map(text),
    running: count(running),
    jobs: list(jobs).map(readJob),
  };
}

function readJob(value: unknown): RunningJob {
  const { queue, id, name, attempt, since } = fieldsOf(value);
  return { queue: text(queue), id: text(id), name: text(name), attempt: count(attempt), since: count(since) };
}

function fieldsOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new TypeError('no object');
  return value as Record<string, unknown>;
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('no text');
  return value;
}

/** A whole number from 0. Times must also be small enough for a date. */
function count(value: unknown): number {
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > 8.64e15)
    throw new TypeError('no count');
  return value as number;
}

function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError('no list');
  return value;
}
