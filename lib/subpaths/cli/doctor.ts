import type { BulkAct } from '../../contract/bulk-act-verbs.js';
import type { LimitState } from '../../contract/limit-verbs.js';
import { isBlocked } from '../../contract/process-verbs.js';
import { checkServer, fieldsOf, nameOfServer } from '../../engine/wire/server-check.js';
import { GodwitError, RedisRefusedError } from '../../errors.js';
import { messageOf } from '../../errors/thrown.js';
import { fullPlaces, fullText, type FullPlace } from '../../inspect/full.js';
import {
  readEach,
  type QueueInfo,
  type RefusedWrites,
  type SilentWorkerInfo,
  type WorkerInfo,
} from '../../inspect/queue-inspector.js';
import {
  isPausedByAll,
  LOST_AFTER_MS,
  pausedSchedules,
  servingOf,
  silentWorkers,
  unhandledNames,
  unhandledText,
  type Serving,
} from '../../inspect/serving.js';
import { stoppedGroups, stoppedText, type StoppedGroups } from '../../inspect/stopped.js';
import { infoOf, reasonOf, usersOf, type HoldReason } from '../../producer/limit-info.js';
import { type Command, type Context } from './context.js';
import { DONE, messageFor, UNHEALTHY } from './failure.js';
import { prefixAdvice } from './prefixes.js';
import { age, cut, jobsWait, wrapped, type Cell } from './table.js';
import { RULES } from '../../job/rules.js';
import { counted, listed, quoted } from '../../job/text.js';

/** One line of the output of `doctor`. */
interface Finding {
  readonly level: 'ok' | 'warn' | 'fail';
  readonly what: string;
  /** A finding of `doctor`, with advice. */
  readonly text: string;
}

/** The node of this queue is asked if there is no other. */
const ANY_QUEUE = 'godwit-doctor';
/** Round trips are measured until there are this many, or for this long: a line may be slow. */
const ROUND_TRIPS = 100;
const MEASURE_MS = 1_000;
/** How many queues are examined at once. With `--deep` it is one. */
const AT_ONCE = 8;
const SLOW_MS = 10;
const CLOCK_MS = 1_000;
const OLD_MS = 600_000;
const LATE_MS = 60_000;
/** The used part of `maxmemory` above which `doctor` warns. */
const FULL = 0.8;

/** Schedules that are read, for each queue. */
const MOST_SCHEDULES = 1_000;

const STYLES = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

const ok = (what: string, text: string): Finding => ({ level: 'ok', what, text });
const warn = (what: string, text: string): Finding => ({ level: 'warn', what, text });
const fail = (what: string, text: string): Finding => ({ level: 'fail', what, text });

export const doctor: Command = {
  name: 'doctor',
  usage: '',
  about: 'checks Redis, queues, workers and schedules; exit code 4 if a check fails',
  words: [0, 0],
  options: { deep: { type: 'boolean', about: 'also audits every queue' } },
  async run(context) {
    const { print } = context;
    const findings = await examine(context);
    const rows = findings.map(({ level, what, text }): Cell[] => [
      { text: level, style: STYLES[level] },
      what,
      text,
    ]);
    print.rows(findings, [{ title: '' }, cut('WHAT'), wrapped('FOUND')], rows, '');
    return findings.some(({ level }) => level === 'fail') ? UNHEALTHY : DONE;
  },
};

async function examine(context: Context): Promise<Finding[]> {
  const { inspector } = context;
  const isCluster = context.values['cluster'] === true;
  const findings: Finding[] = [];
  try {
    const info = (await inspector.producer.engine.admin.serverInfo(ANY_QUEUE)) ?? '';
    findings.push(...serverFindings(info));
  } catch (error) {
    if (!(error instanceof GodwitError)) throw error;
    // Only this node of the cluster may be down.
    const advice = isCluster ? 'a node of the cluster is down' : 'check --url, the user and the network';
    findings.push(fail('Redis', `${messageOf(error)}; ${advice}`));
    if (!isCluster) return findings;
  }
  try {
    findings.push(...(await examineQueues(context)));
  } catch (error) {
    if (!(error instanceof GodwitError)) throw error;
    const isOfRights = error instanceof RedisRefusedError && error.reply === 'NOPERM';
    const advice = isOfRights ? '; godwit acl prints what a user needs' : '';
    findings.push(fail(advice === '' ? 'queues' : 'rights', `${messageFor(error, isCluster)}${advice}`));
  }
  return findings;
}

/** Why writes are refused. On Redis Cluster each queue may be on another node. */
export function refusedWrites(
  { inspector, values }: Context,
  queues: readonly string[],
): Promise<RefusedWrites[]> {
  const isCluster = values['cluster'] === true && queues.length > 0;
  return inspector.refusedWrites(isCluster ? queues : [queues[0] ?? ANY_QUEUE]);
}

async function examineQueues(context: Context): Promise<Finding[]> {
  const { inspector, values } = context;
  const [{ queues, faults }, { workers, silent }] = await Promise.all([
    inspector.readableQueues(),
    inspector.allWorkers(),
  ]);
  const all = [...queues.map(({ name }) => name), ...faults.keys()];
  const [refused, limits] = await Promise.all([
    refusedWrites(context, all),
    // On Redis Cluster they may be on another node than the queues.
    inspector.producer.engine.limits.shared().catch((error: Error) => error),
  ]);
  // `serverFindings` reports a replica.
  const writes = refused.filter(({ reply }) => reply !== 'READONLY');
  const findings = [
    ...writes.map(({ text }) => fail('writes', text)),
    await roundTrips(context, queues[0]?.name ?? ANY_QUEUE),
    await clock(context),
  ];
  if (queues.length + faults.size === 0)
    findings.push(
      warn('queues', `none with the prefix ${context.prefix}; ${await prefixAdvice(context.url)}`),
    );
  const shared = limits instanceof Error ? [] : limits;
  if (limits instanceof Error) findings.push(fail('shared limits', `cannot be read: ${messageOf(limits)}`));
  const byName = new Map(queues.map((queue) => [queue.name, queue]));
  const examineQueue = async (name: string) => {
    const queue = byName.get(name)!;
    const { counts } = queue;
    const { engine } = inspector.producer;
    const [stops, full, stopped, ...others] = await Promise.all([
      counts.waiting > 0 ? stopsOf(context, queue, shared) : [],
      fullPlaces(engine, queue),
      counts.dead > 0 ? stoppedGroups(engine, name) : undefined,
      counts.delayed > 0 ? unhandled(context, name) : [],
      leases(context, name),
      schedules(context, name, workers),
    ]);
    return [
      ...queueFindings(queue, servingOf(workers, name), stops, full, stopped),
      ...others.flat(),
      ...(values['deep'] === true ? [await audit(context, name)] : []),
    ];
  };
  const atOnce = values['deep'] === true ? 1 : AT_ONCE;
  findings.push(...(await readEach([...byName.keys()], examineQueue, faults, atOnce)).flat());
  for (const [name, error] of faults)
    findings.push(fail(`queue ${name}`, `cannot be read: ${messageOf(error)}`));
  // The reason why they cannot be read is reported above.
  const acts = await inspector.bulkActs().catch(() => []);
  findings.push(...sharedFindings(shared), ...acts.flatMap(actFindings));
  findings.push(...workerFindings(workers), ...silent.map(silentFinding));
  return findings;
}

function serverFindings(info: string): Finding[] {
  const field = fieldsOf(info);
  const findings = [ok('server', nameOfServer(info) ?? 'unknown version')];
  const warnings = checkServer(info, 0);
  for (const { code, message } of warnings)
    findings.push(code === 'no-append-only-file' ? warn(code, message) : fail(code, message));
  const [used, most] = [Number(field('used_memory')), Number(field('maxmemory'))];
  if (most > 0 && used / most > FULL)
    findings.push(
      fail('memory', `${Math.round((used / most) * 100)} % of maxmemory is used: adds fail when it is full`),
    );
  else
    findings.push(
      ok('memory', most > 0 ? `${Math.round((used / most) * 100)} % of maxmemory` : 'no maxmemory'),
    );
  return findings;
}

/** @param queue the queue whose node is asked. */
async function roundTrips({ inspector }: Context, queue: string): Promise<Finding> {
  const times: number[] = [];
  const end = performance.now() + MEASURE_MS;
  let start = performance.now();
  while (times.length < ROUND_TRIPS && start < end) {
    // oxlint-disable-next-line no-await-in-loop -- each is measured alone
    await inspector.producer.engine.admin.lastFull(queue);
    const now = performance.now();
    times.push(now - start);
    start = now;
  }
  times.sort((a, b) => a - b);
  const [p50, p99] = [0.5, 0.98].map((part) => times[Math.floor(times.length * part)]!) as [number, number];
  const text = `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`;
  return p50 > SLOW_MS ? warn('round trip', `${text}: run workers nearer to Redis`) : ok('round trip', text);
}

async function clock({ inspector }: Context): Promise<Finding> {
  const difference = inspector.producer.engine.now() - Date.now();
  const text = `${Math.abs(Math.round(difference))} ms ${difference < 0 ? 'behind' : 'ahead of'} this machine`;
  return Math.abs(difference) > CLOCK_MS
    ? warn('clock of Redis', `${text}: delays and schedules follow Redis; synchronise the clocks`)
    : ok('clock of Redis', text);
}

/** The limits that keep jobs of the queue from starting now. Those of its groups only if its oldest job is late. */
async function stopsOf(
  { inspector }: Context,
  { name, oldestWaitingMs }: QueueInfo,
  shared: readonly LimitState[],
): Promise<HoldReason[]> {
  const queue = inspector.queue(name);
  const used = shared.filter(({ users }) => users.includes(name));
  const own = [...(await inspector.producer.engine.limits.list(name)), ...used]
    .map(infoOf)
    .filter(({ of, waiting }) => of === 'queue' || of === 'shared' || (of === 'name' && waiting > 0));
  const stops = own.flatMap((limit) => reasonOf(limit) ?? []);
  if (stops.length > 0 || !isLate(oldestWaitingMs)) return stops;
  const { groups } = await queue.groups({ limit: 100 });
  // Groups that dead jobs stop have a finding of their own.
  return groups
    .filter(({ waiting, isStopped }) => waiting > 0 && !isStopped)
    .flatMap((group) => reasonOf(group) ?? []);
}

/** Groups that wait for a person. */
function stoppedFindings(queue: string, stopped: StoppedGroups): Finding[] {
  const [first, ...others] = stopped.groups;
  if (!first) return [];
  const advice =
    others.length === 0
      ? `godwit retry ${queue} ${first.holder}, or remove it`
      : `retry or remove these jobs; godwit groups ${queue}`;
  return [warn(`queue ${queue}`, `${stoppedText(stopped)}; ${advice}`)];
}

/** Shared limits that let no job start now. They are also reported if no worker has asked them within a lease. */
function sharedFindings(shared: readonly LimitState[]): Finding[] {
  return shared.flatMap((limit) => {
    const reason = reasonOf(infoOf(limit));
    if (!reason || !isStop(reason)) return [];
    const users = usersOf(limit);
    const queues = users.length > 0 ? listed(users) : 'all queues that use it';
    return [warn(`limit ${reason.name}`, `${reason.text}: jobs of ${queues} wait`)];
  });
}

/** An act on many jobs that waits for a person. */
function actFindings({ queue, kind, state, examined, total }: BulkAct): Finding[] {
  if (state !== 'interrupted') return [];
  const text = `an act on many jobs (${kind}) was interrupted after ${examined} of ${counted(total, 'job')}`;
  return [warn(`queue ${queue}`, `${text}: continue or stop it on the dashboard, or with queue.bulkActs`)];
}

function isLate(oldestWaitingMs: number | null): boolean {
  return (oldestWaitingMs ?? 0) > OLD_MS;
}

/** Whether the limit lets no job start at all. A rate or a concurrency that is used up is normal while a queue is busy. */
function isStop({ reason }: HoldReason): boolean {
  return reason !== 'rate' && reason !== 'concurrency';
}

/**
 * @param stops the limits that keep its jobs from starting now.
 */
export function queueFindings(
  queue: QueueInfo,
  serving: Serving,
  stops: readonly HoldReason[],
  full: readonly FullPlace[],
  stopped: StoppedGroups = { groups: [], isMore: false },
): Finding[] {
  const { name, counts, paused, oldestWaitingMs } = queue;
  const { processes } = serving;
  const what = `queue ${name}`;
  const findings: Finding[] = [];
  if (counts.waiting > 0 && processes === 0)
    findings.push(
      fail(
        what,
        `${jobsWait(counts.waiting)} and no process works on it: start a worker whose providers have its processor`,
      ),
    );
  const stop = stops.find(isStop) ?? (isLate(oldestWaitingMs) ? stops[0] : undefined);
  if (paused) findings.push(warn(what, `is paused; godwit resume ${name}`));
  else if (counts.waiting > 0 && isPausedByAll(serving))
    findings.push(
      warn(
        what,
        `${jobsWait(counts.waiting)} and all processes of the queue have paused it; godwit workers ${name}`,
      ),
    );
  if (stop) {
    const command = stop.of === 'group' ? 'groups' : 'limits';
    findings.push(warn(what, `${jobsWait(counts.waiting)}: ${stop.text}; godwit ${command} ${name}`));
  } else if (
    findings.length === 0 &&
    !stopped.groups.some(({ waiting }) => waiting > 0) &&
    isLate(oldestWaitingMs)
  )
    findings.push(
      warn(what, `its oldest job has waited ${age(oldestWaitingMs)}: add workers or concurrency`),
    );
  for (const one of full) {
    const [whose, advice] =
      one.group === null
        ? ['', 'add workers, or raise maxWaiting']
        : [`group ${quoted(one.group)} `, `godwit groups ${name}`];
    findings.push(warn(what, `${whose}${fullText(one, age)}; ${advice}`));
  }
  if (counts.dead > 0) findings.push(warn(what, `${counted(counts.dead, 'dead job')}; godwit dead ${name}`));
  findings.push(...stoppedFindings(name, stopped));
  return findings.length > 0
    ? findings
    : [ok(what, `${counts.waiting} waiting, ${counted(processes, 'process', 'processes')}`)];
}

function workerFindings(workers: readonly WorkerInfo[]): Finding[] {
  if (workers.length === 0) return [warn('workers', 'there are no worker processes')];
  const versions = [...new Set(workers.map(({ versions: { godwit } }) => godwit))];
  const blocked = workers
    .filter(isBlocked)
    .map(({ host, pid, blockedMs }) =>
      warn(
        'workers',
        `the event loop of ${host}:${pid} was blocked for ${age(blockedMs)} in the last minute: move long computations to a thread`,
      ),
    );
  if (versions.length > 1)
    return [
      warn(
        'workers',
        `${workers.length} processes of different versions: ${versions.join(', ')}; finish the rollout`,
      ),
      ...blocked,
    ];
  return blocked.length > 0 ? blocked : [ok('workers', `${workers.length} of version ${versions[0]}`)];
}

function silentFinding({ host, pid, silentMs }: SilentWorkerInfo): Finding {
  const text = `${host}:${pid} has been silent for ${age(silentMs)}: it was killed, hangs, or does not reach Redis`;
  return warn('workers', text);
}

async function leases({ inspector }: Context, queue: string): Promise<Finding[]> {
  const late = await silentWorkers(inspector.producer.engine, queue, LOST_AFTER_MS);
  return late.length === 0
    ? []
    : [
        fail(
          `queue ${queue}`,
          `${counted(late.length, 'worker')} went silent and nobody took back the jobs: start a worker`,
        ),
      ];
}

async function unhandled({ inspector }: Context, queue: string): Promise<Finding[]> {
  const names = await unhandledNames(inspector.producer.engine, queue);
  return names.map((one) => warn(`queue ${queue}`, unhandledText(one)));
}

async function schedules(
  { inspector }: Context,
  queue: string,
  workers: readonly WorkerInfo[],
): Promise<Finding[]> {
  const { engine } = inspector.producer;
  const [{ now, due }, paused] = await Promise.all([
    engine.schedules.due(queue, 0),
    pausedSchedules(engine, queue, MOST_SCHEDULES),
  ]);
  const late = due.filter(({ nextAt }) => nextAt !== null && now - nextAt > LATE_MS).map(({ id }) => id);
  const findings: Finding[] = [];
  const text = (ids: readonly string[], state: string) =>
    `${counted(ids.length, 'schedule is', 'schedules are')} ${state} (${ids[0]!})`;
  const atLeast = late.length < RULES.dueSchedulesMax ? '' : 'at least ';
  const isServed = servingOf(workers, queue).processes > 0;
  const advice = isServed ? 'its workers cannot fire them: see their log' : 'start a worker';
  if (late.length > 0) findings.push(fail(`queue ${queue}`, `${atLeast}${text(late, 'late')}: ${advice}`));
  if (paused.length > 0)
    findings.push(warn(`queue ${queue}`, `${text(paused, 'paused')}; godwit schedules ${queue}`));
  return findings;
}

async function audit({ inspector }: Context, queue: string): Promise<Finding> {
  const { violations, checked } = await inspector.queue(queue).audit();
  const [first] = violations;
  return first
    ? fail(
        `audit ${queue}`,
        `${counted(violations.length, 'problem')}, such as: ${first.text}; godwit repair ${queue}`,
      )
    : ok(`audit ${queue}`, counted(checked, 'job'));
}
