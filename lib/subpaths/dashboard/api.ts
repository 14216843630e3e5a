import { idText } from '../../contract/actions.js';
import type { StoredJob } from '../../contract/admin-verbs.js';
import type { LimitState } from '../../contract/limit-verbs.js';
import type { ProcessOrder, ProcessRecord } from '../../contract/process-verbs.js';
import { JobNotFoundError } from '../../errors.js';
import { fullPlaces } from '../../inspect/full.js';
import { readEach, type LimitsOfQueue, type WorkerInfo } from '../../inspect/queue-inspector.js';
import { LOST_AFTER_MS, silentWorkers, waitReasons } from '../../inspect/serving.js';
import { stoppedGroups } from '../../inspect/stopped.js';
import { fingerprintOf } from '../../job/fingerprint.js';
import { exampleOf } from '../../job/define-job.js';
import { checkJobId } from '../../job/job-id.js';
import { decodeBody } from '../../job/job-record.js';
import { boolean, refuse } from '../../options/check.js';
import { dueTimeOf, startsIn, startTimes } from '../../producer/job-snapshot.js';
import type { LimitInfo } from '../../producer/limit-info.js';
import { listFirstGroups } from '../../producer/queue-limits.js';
import { listActions } from './action-log.js';
import { addJob, cancelJob, moveJob, replaceData } from './acts.js';
import { actOnPage, allowSearch, listBulkActs, resumeBulkAct, startBulkAct, stopBulkAct } from './bulk.js';
import {
  onJob,
  onQueue,
  queueOf,
  unreadableOf,
  visible,
  visibleOf,
  type ApiCall,
  type ApiParts,
  type Route,
} from './call.js';
import { HttpFault } from './http.js';
import { findJobs, readSearch } from './job-search.js';
import { clearGroup, clearLimit, releasableOf, releaseLimit, setGroup, setLimit } from './limit-edits.js';
import { attentionOf, queuesOf, worksOnAny, type QueueFacts } from './overview.js';
import { readSeries, sumOf, toSeriesView, type SeriesView } from './series.js';
import { editSchedule, previewSchedule } from './schedule-edits.js';
import { scheduleHistory, scheduleResults, schedules } from './schedule-lists.js';
import {
  toDetail,
  toQueueView,
  toRow,
  toWorkerView,
  type DeadGroup,
  type DeadView,
  type FoundJob,
  type JobDetail,
  type JobListView,
  type OverviewView,
  type QueueDetail,
  type QueueMemory,
  type QueueView,
  type RedisView,
  type WorkersView,
} from './views.js';

const MAX_GROUPS = 100;

async function viewQueue(
  name: string,
  { inspector, engine }: ApiParts,
  workers: readonly WorkerInfo[],
): Promise<QueueView> {
  const info = await inspector.info(name);
  const { total } = await engine.admin.stats(name, 1);
  return toQueueView(info, total, workers);
}

const overview: Route = async (call, parts): Promise<OverviewView> => {
  const all = await parts.queues();
  const names = await visibleOf(call, all);
  const shown = new Set(names);
  const { workers, silent } = await parts.inspector.allWorkers();
  const faults = new Map<string, Error>();
  const read = async (name: string): Promise<QueueFacts> => {
    const [view, { now: at, due }, silent, slow] = await Promise.all([
      viewQueue(name, parts, workers),
      parts.engine.schedules.due(name, 0),
      silentWorkers(parts.engine, name, LOST_AFTER_MS),
      parts.slow.of(name),
    ]);
    const late = due.map(({ id, nextAt }) => ({ id, lateMs: at - (nextAt ?? at) }));
    const full = await fullPlaces(parts.engine, view, parts.optionsOf(name).maxWaiting);
    const stopped = view.counts.dead > 0 ? await stoppedGroups(parts.engine, name) : null;
    return { view, silent: silent.length, late, slow, full, stopped };
  };
  const found = await readEach(names, read, faults);
  const queues = found.map(({ view }) => view);
  const limits = await visibleLimits(
    queues.map(({ name }) => name),
    parts,
    names.length === all.length,
    faults,
  );
  const warnings = (await call.canSee()) ? parts.warnings() : [];
  // Pages with the list of acts show the error.
  const acts = await parts.inspector.bulkActs().catch(() => []);
  return {
    now: parts.engine.now(),
    queues,
    unreadable: unreadableOf(faults),
    attention: attentionOf(found, { workers, silent, acts }, limits, warnings, parts.maxOldestMs),
    processes: workers.filter((worker) => worksOnAny(worker, shown)).length,
    slots: slotsOf(workers, shown),
  };
};

/** The slots of the pools that work on these queues. */
function slotsOf(workers: readonly WorkerInfo[], names: ReadonlySet<string>): number {
  const pools = workers.flatMap((worker) =>
    worker.pools.filter(({ queues }) => queues.some((name) => names.has(name))),
  );
  return pools.reduce((sum, { concurrency }) => sum + concurrency, 0);
}

/** The limits of these queues, and the shared limits that they use; all shared limits for a person who may see all queues. */
async function visibleLimits(
  names: readonly string[],
  parts: ApiParts,
  areAll: boolean,
  faults: Map<string, Error>,
): Promise<LimitsOfQueue[]> {
  const limits = await parts.inspector.limits(names, faults);
  if (areAll) return limits;
  const used = new Set(names.flatMap((name) => parts.optionsOf(name).uses ?? []));
  const isUsed = ({ field, users }: LimitState) =>
    used.has(field.slice(2)) || users.some((name) => names.includes(name));
  return limits.map((one) => (one.queue === '' ? { ...one, limits: one.limits.filter(isUsed) } : one));
}

const queueDetail: Route = async (call, parts): Promise<QueueDetail> => {
  const queue = await queueOf(call, parts);
  const workers = await parts.inspector.workers({ queue: queue.name });
  const { group } = call.query;
  const [view, { days, total }, rights, limits, { groups, hasMore }, named] = await Promise.all([
    viewQueue(queue.name, parts, workers),
    queue.stats({ days: 7 }),
    call.rightsOf({ queue: queue.name }),
    queue.limits.list(),
    listFirstGroups(parts.engine, queue.name, MAX_GROUPS),
    group ? queue.group(group).state() : null,
  ]);
  return {
    ...view,
    rights,
    byName: total.byName,
    days: days.map(({ byName: _, ...day }) => day),
    limits: [...limits.filter(isSet), ...(named ? [named] : groups)],
    hasMoreGroups: hasMore,
    releasable: await releasableOf(call, parts, queue.name, limits),
    definitions: Object.fromEntries(
      parts.definitions
        .filter((one) => one.queue === queue.name && one.schema !== undefined)
        .map((one) => [one.name, exampleOf(one)]),
    ),
  };
};

/** The list of limits has an entry for the queue even if the queue has no limits. */
function isSet({
  rate,
  concurrency,
  maxSize,
  fairness,
  breaker,
  retryBudget,
  isLive,
  heldForMs,
}: LimitInfo): boolean {
  const isLimited = rate !== null || concurrency !== null || maxSize !== null || fairness === 'in-flight';
  return isLimited || breaker !== null || retryBudget !== null || isLive || heldForMs > 0;
}

const queueSeries: Route = async (call, parts): Promise<SeriesView> => {
  const { name } = await queueOf(call, parts);
  return toSeriesView(await parts.inspector.series(name, readSeries(call.query, parts.engine.now())));
};

const queueMemory: Route = async (call, parts): Promise<QueueMemory> => {
  const { name } = await queueOf(call, parts);
  const bytes = await parts.inspector.memoryBytes(name);
  return { bytes };
};

const allSeries: Route = async (call, parts): Promise<SeriesView> => {
  const span = readSeries(call.query, parts.engine.now());
  const names = await visible(call, parts);
  const faults = new Map<string, Error>();
  const found = await readEach(names, (name) => parts.inspector.seriesWithoutHosts(name, span), faults);
  return { ...sumOf(found, span), unreadable: unreadableOf(faults) };
};

const listJobs: Route = async (call, parts): Promise<JobListView> => {
  const { name } = await queueOf(call, parts);
  const { engine } = parts;
  await allowSearch(call, parts, name, call.query['where']);
  const search = readSearch(call.query);
  const { contains = '', after } = search;
  const processes = search.state === 'active' ? engine.processes.list() : undefined;
  const [{ jobs, cursor, examined }, counts, rights, withId, listed] = await Promise.all([
    findJobs(engine, name, search, parts.redactor, processes),
    engine.admin.counts(name),
    call.rightsOf({ queue: name }),
    after === null && isJobId(contains) ? engine.admin.get(name, contains, true) : null,
    processes,
  ]);
  const starts = startsIn({ records: listed?.records ?? [] }, name);
  const options = parts.optionsOf(name);
  const row = (job: StoredJob) => toRow(job, options, starts, parts.redactor);
  const total = counts[search.state];
  return {
    jobs: jobs.map(row),
    cursor,
    examined,
    total,
    counts,
    rights,
    withId: withId && row(withId),
    processes: placesOf(listed?.records ?? [], name),
  };
};

function isJobId(text: string): boolean {
  try {
    return checkJobId(text) === text;
  } catch {
    return false;
  }
}

/** The fields of a job that decide why it does not start. */
function placeOf({ id, state, dueAt, failed, body }: StoredJob) {
  const { name = '', options } = decodeBody(body) ?? {};
  const isFresh = failed === 0 && options?.runnableAt === undefined;
  const { group = null, cost = 1 } = options ?? {};
  return { id, name, state, dueAt: dueTimeOf(dueAt), group, cost, isFresh };
}

/** Host and process id of the workers of this queue, by the names of the workers. */
function placesOf(
  processes: readonly Pick<WorkerInfo | ProcessRecord, 'host' | 'pid' | 'pools'>[],
  queue: string,
): Record<string, string> {
  const places = processes.flatMap(({ host, pid, pools }) =>
    pools
      .filter(({ queues }) => queues.includes(queue))
      .flatMap(({ workers }) => workers.map((worker) => [worker, `${host}:${pid}`] as const)),
  );
  return Object.fromEntries(places);
}

const jobDetail: Route = async (call, parts): Promise<JobDetail> => {
  const queue = await queueOf(call, parts);
  const { name } = queue;
  const { engine } = parts;
  const id = checkJobId(call.params['id']!);
  const job = await engine.admin.get(name, id);
  if (!job) throw new JobNotFoundError(name, id);
  const rights = await call.rightsOf({ queue: name, jobId: id });
  if (!rights.includes('read')) throw new JobNotFoundError(name, id);
  const isFull = call.query['full'] !== undefined;
  const workers = await parts.inspector.workers({ queue: name });
  const processes = placesOf(workers, name);
  const waitsFor = await waitReasons(queue, placeOf(job), workers);
  const canSeeData = rights.includes('read-data');
  const shown = {
    canSeeData,
    links: parts.links.of(name, job, canSeeData),
    isFull,
    rights,
    now: engine.now(),
    waitsFor,
    isLost: job.worker !== null && (await silentWorkers(engine, name)).includes(job.worker),
    processes,
  };
  return toDetail(job, parts.optionsOf(name), await startTimes(engine, name, [job]), parts.redactor, shown);
};

/** It changes nothing, so it is not recorded. */
const audit: Route = async (call, parts) => {
  const queue = await queueOf(call, parts);
  await call.require('queue.repair', { queue: queue.name });
  return { report: await queue.audit() };
};

const add: Route = async (call, parts) => {
  const queue = await queueOf(call, parts);
  const { name } = queue;
  const target = typeof call.body['id'] === 'string' ? idText(call.body['id']) : '';
  const needs = [['job.add', { queue: name }]] as const;
  return call.perform({ needs, action: 'job.add', queue: name, target }, async () => {
    const { like } = call.body;
    if (like !== undefined)
      await call.require('read-data', { queue: name, jobId: checkJobId(like as string) });
    const { id, duplicate } = await addJob(queue, parts, call.body);
    return { id, duplicate };
  });
};

const dead: Route = async (call, parts): Promise<DeadView> => {
  const names = await visible(call, parts);
  const faults = new Map<string, Error>();
  const totals = await readEach(
    names,
    async (queue) => [queue, (await parts.engine.admin.counts(queue)).dead] as const,
    faults,
  );
  const deadIn = new Map(totals);
  // One queue after another, because each answer may be large.
  const found = await readEach(
    [...deadIn.keys()],
    (queue) => deadOf(queue, deadIn.get(queue)!, call, parts),
    faults,
    1,
  );
  return {
    groups: found.flatMap(({ groups }) => groups).toSorted((a, b) => b.count - a.count),
    examined: Object.fromEntries(found.map(({ queue, examined, total }) => [queue, { examined, total }])),
    rights: Object.fromEntries(found.map(({ queue, rights }) => [queue, rights])),
    unreadable: unreadableOf(faults),
  };
};

async function deadOf(
  queue: string,
  total: number,
  call: ApiCall,
  { engine, redactor, optionsOf }: ApiParts,
) {
  const rights = await call.rightsOf({ queue });
  const options = optionsOf(queue);
  const groups = new Map<string, DeadGroup>();
  let examined = 0;
  for (let cursor: string | null = ''; total > 0 && cursor !== null && examined < 2_000;) {
    const query = { state: 'dead', order: 'desc', limit: '200', ...(cursor !== '' && { cursor }) };
    // oxlint-disable-next-line no-await-in-loop -- each page has the cursor of the next
    const page = await findJobs(engine, queue, readSearch(query), redactor);
    for (const job of page.jobs) {
      const row = toRow(job, options, new Map(), redactor);
      const error = fingerprintOf(job.failure, redactor.text);
      const reason = row.reason ?? '';
      const key = JSON.stringify([reason, row.name, error]);
      const at = job.endedAt ?? 0;
      const there = groups.get(key);
      groups.set(key, {
        ...(there ?? { queue, reason, name: row.name, error, sample: job.id, lastAt: at }),
        count: (there?.count ?? 0) + 1,
        firstAt: at,
      });
    }
    examined += page.jobs.length;
    cursor = page.cursor;
  }
  return { queue, groups: [...groups.values()], examined, total, rights };
}

const workers: Route = async (call, parts): Promise<WorkersView> => {
  const names = new Set(await visible(call, parts));
  const view = (worker: WorkerInfo) => toWorkerView(worker, (queue) => names.has(queue));
  const all = await parts.inspector.allWorkers();
  const [found, silent] = [all.workers.map(view), all.silent.map(view)];
  // A process checks its jobs four times per lease, and its next heartbeat writes the result.
  const maxReportMs = Math.max(0, ...[...names].map((name) => parts.optionsOf(name).lease.leaseMs / 2));
  return {
    now: parts.engine.now(),
    maxReportMs,
    workers: found.filter((one) => one !== null),
    silent: silent.filter((one) => one !== null),
  };
};

/** Gives an order to one process, for those of its queues that this person may see. Each needs the right. */
function onWorker(order: ProcessOrder['kind']): Route {
  return async (call, parts) => {
    const names = new Set(await visible(call, parts));
    const { id } = call.params;
    const worker = (await parts.inspector.workers()).find((one) => one.id === id);
    const seen = worker && toWorkerView(worker, (queue) => names.has(queue));
    if (!seen) throw new HttpFault(404, 'GODWIT_PROCESS_NOT_FOUND', 'no such worker process is alive');
    const queues = [...new Set(queuesOf(seen))];
    const needs = queues.map((queue) => ['queue.pause', { queue }] as const);
    for (const queue of queues) {
      const what = { needs, action: `process.${order}`, queue, target: `${seen.host}:${seen.pid}` };
      // oxlint-disable-next-line no-await-in-loop -- one entry of the process has all its orders
      await call.perform(what, (actor) =>
        parts.inspector.processes[order]({ process: id, queue, by: actor }),
      );
    }
    return { queues };
  };
}

const SECTIONS: Readonly<Record<string, readonly string[]>> = {
  Server: ['redis_version', 'valkey_version', 'redis_mode', 'server_mode', 'os', 'uptime_in_seconds'],
  Memory: [
    'used_memory_human',
    'used_memory_peak_human',
    'maxmemory_human',
    'maxmemory_policy',
    'mem_fragmentation_ratio',
  ],
  Persistence: [
    'aof_enabled',
    'aof_last_write_status',
    'rdb_last_bgsave_status',
    'rdb_last_save_time',
    'loading',
  ],
  Replication: ['role', 'connected_slaves', 'master_link_status'],
  Clients: ['connected_clients', 'blocked_clients', 'maxclients'],
  Work: ['instantaneous_ops_per_sec', 'total_commands_processed', 'evicted_keys', 'rejected_connections'],
};

const redis: Route = async (call, parts): Promise<RedisView> => {
  await call.require('read');
  const [queue] = await visible(call, parts);
  const warnings = parts.warnings().map(({ code, message }) => ({ code, message }));
  const { server } = parts.engine.processes;
  if (queue === undefined) return { server, sections: [], warnings, roundTripMs: 0 };
  const start = performance.now();
  const text = await parts.engine.admin.serverInfo(queue);
  const roundTripMs = performance.now() - start;
  const info = new Map(
    [...(text ?? '').matchAll(/^([a-z_]+):(.*?)\r?$/gm)].map(([, key, value]) => [key!, value!]),
  );
  const sections = Object.entries(SECTIONS).map(([title, keys]) => ({
    title,
    facts: keys.flatMap((key) => (info.has(key) ? [[key, info.get(key)!] as const] : [])),
  }));
  return { server, sections: sections.filter(({ facts }) => facts.length > 0), warnings, roundTripMs };
};

const isForced = ({ body }: ApiCall) =>
  body['force'] === undefined ? false : boolean(body['force'], 'force', refuse)!;

/** Routes that refuse unknown fields themselves. */
const OWN_CHECK = null;

/** The jobs with this id, in all queues that this person may see. Queues that cannot be read are left out. */
const findJob: Route = async (call, parts): Promise<FoundJob[]> => {
  const { engine, optionsOf, redactor } = parts;
  const jobId = checkJobId(call.query['id'] ?? '');
  const read = async (queue: string): Promise<FoundJob | null> => {
    const job = await engine.admin.get(queue, jobId, true);
    if (!job || !(await call.rightsOf({ queue, jobId })).includes('read')) return null;
    return { queue, ...toRow(job, optionsOf(queue), new Map(), redactor) };
  };
  const found = await readEach(await visible(call, parts), read, new Map());
  return found.filter((one) => one !== null);
};

/**
 * Method and path under `/api/v1`; `:x` is one segment. `fields` are those of the body, and of the query of a GET, none if left out.
 * Others are refused: a script that misspells `name` would change the limit of the whole queue.
 */
export const ROUTES: readonly (readonly [
  method: string,
  path: string,
  route: Route,
  fields?: readonly string[] | typeof OWN_CHECK,
])[] = [
  ['GET', 'overview', overview],
  ['GET', 'queues', async (call, parts) => ((await overview(call, parts)) as OverviewView).queues],
  ['GET', 'queues/:queue', queueDetail, ['group']],
  [
    'POST',
    'queues/:queue/pause',
    onQueue('queue.pause', async (queue) => ({ changed: await queue.pause() })),
  ],
  [
    'POST',
    'queues/:queue/resume',
    onQueue('queue.pause', async (queue) => ({ changed: await queue.resume() }), 'queue.resume'),
  ],
  ['POST', 'queues/:queue/audit', audit],
  [
    'POST',
    'queues/:queue/repair',
    onQueue('queue.repair', async (queue) => ({ report: await queue.repair() })),
  ],
  [
    'DELETE',
    'queues/:queue',
    onQueue('queue.obliterate', async (queue, call) => {
      if (call.body['confirm'] !== queue.name)
        throw new HttpFault(400, 'NOT_CONFIRMED', 'confirm must be the name of the queue');
      await queue.obliterate({ force: isForced(call) });
    }),
    ['confirm', 'force'],
  ],
  [
    'POST',
    'queues/:queue/groups/:id/pause',
    onQueue('queue.pause', (queue, { params }) => queue.group(params['id']!).pause(), 'group.pause'),
  ],
  [
    'POST',
    'queues/:queue/groups/:id/resume',
    onQueue('queue.pause', (queue, { params }) => queue.group(params['id']!).resume(), 'group.resume'),
  ],
  [
    'POST',
    'queues/:queue/groups/:id/release',
    onQueue('queue.pause', (queue, { params }) => queue.group(params['id']!).release(), 'group.release'),
  ],
  ['POST', 'queues/:queue/groups/:id/limits', setGroup, OWN_CHECK],
  ['DELETE', 'queues/:queue/groups/:id/limits', clearGroup],
  ['POST', 'queues/:queue/limits', setLimit, OWN_CHECK],
  ['DELETE', 'queues/:queue/limits', clearLimit, ['name']],
  ['POST', 'queues/:queue/limits/release', releaseLimit, ['name', 'shared']],
  ['GET', 'series', allSeries, ['hours']],
  ['GET', 'queues/:queue/series', queueSeries, OWN_CHECK],
  ['GET', 'queues/:queue/memory', queueMemory],
  ['GET', 'queues/:queue/jobs', listJobs, OWN_CHECK],
  ['POST', 'queues/:queue/jobs', add, OWN_CHECK],
  ['POST', 'queues/:queue/actions', actOnPage, OWN_CHECK],
  ['GET', 'bulk', listBulkActs],
  ['POST', 'queues/:queue/bulk', startBulkAct, OWN_CHECK],
  ['POST', 'queues/:queue/bulk/:id/stop', stopBulkAct],
  ['POST', 'queues/:queue/bulk/:id/resume', resumeBulkAct],
  ['GET', 'queues/:queue/jobs/:id', jobDetail, ['full']],
  ['DELETE', 'queues/:queue/jobs/:id', onJob('job.remove', (queue, id) => queue.remove(id))],
  ['POST', 'queues/:queue/jobs/:id/promote', onJob('job.promote', (queue, id) => queue.promote(id))],
  [
    'POST',
    'queues/:queue/jobs/:id/cancel',
    onJob('job.cancel', (queue, id, { body }, { engine }) => cancelJob(engine, queue, id, body['reason'])),
    ['reason'],
  ],
  ['POST', 'queues/:queue/jobs/:id/retry', onJob('job.retry', (queue, id) => queue.retry(id))],
  [
    'POST',
    'queues/:queue/jobs/:id/move',
    onJob('job.edit', (queue, id, { body }) => moveJob(queue, id, body)),
    OWN_CHECK,
  ],
  [
    'POST',
    'queues/:queue/jobs/:id/data',
    onJob('job.edit', (queue, id, call, parts) => replaceData(call, parts, queue.name, id)),
    ['data', 'version'],
  ],
  ['GET', 'schedules', schedules],
  ['GET', 'schedules/results', scheduleResults],
  ['GET', 'queues/:queue/schedules/:id/history', scheduleHistory],
  [
    'POST',
    'queues/:queue/schedules/:id/run',
    onQueue('schedule.run', async (queue, { params }) => ({
      id: (await queue.schedules.runNow(params['id']!)).id,
    })),
  ],
  [
    'POST',
    'queues/:queue/schedules/:id/pause',
    onQueue('schedule.pause', async (queue, { params }) => ({
      changed: await queue.schedules.pause(params['id']!),
    })),
  ],
  [
    'POST',
    'queues/:queue/schedules/:id/resume',
    onQueue(
      'schedule.pause',
      async (queue, { params }) => ({ changed: await queue.schedules.resume(params['id']!) }),
      'schedule.resume',
    ),
  ],
  ['POST', 'queues/:queue/schedules/:id/preview', previewSchedule, ['rule']],
  ['PUT', 'queues/:queue/schedules/:id', editSchedule, ['version', 'rule', 'name', 'data', 'options']],
  [
    'DELETE',
    'queues/:queue/schedules/:id',
    onQueue('schedule.remove', async (queue, { params }) => ({
      removed: await queue.schedules.remove(params['id']!),
    })),
  ],
  ['GET', 'find', findJob, ['id']],
  ['GET', 'dead', dead],
  ['GET', 'workers', workers],
  ['POST', 'workers/:id/pause', onWorker('pause')],
  ['POST', 'workers/:id/resume', onWorker('resume')],
  ['POST', 'workers/:id/quiet', onWorker('quiet')],
  ['GET', 'redis', redis],
  ['GET', 'actions', listActions, ['queue', 'actor', 'limit', 'cursor']],
];
