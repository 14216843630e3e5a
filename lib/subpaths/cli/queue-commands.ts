import { isBlocked, type ProcessOrder } from '../../contract/process-verbs.js';
import { servingOf } from '../../inspect/serving.js';
import {
  readEach,
  type QueueInfo,
  type SilentWorkerInfo,
  type WorkerInfo,
} from '../../inspect/queue-inspector.js';
import { RedisUnavailableError } from '../../errors.js';
import { HOUR_MS } from '../../contract/history.js';
import { readDuration } from '../../job/duration.js';
import { RULES } from '../../job/rules.js';
import type { ScheduleSnapshot } from '../../producer/schedules.js';
import { cronInWords } from '../../schedule/words.js';
import { ageOf, faultTexts, given, numberOf, type Command, type Context } from './context.js';
import { DONE, FAILED, messageFor, UNHEALTHY } from './failure.js';
import { prefixAdvice } from './prefixes.js';
import { age, bytes, cut, interval, right, spare, wrapped, type Cell } from './table.js';
import { counted } from '../../job/text.js';
import { UsageError } from './usage-error.js';
import type { Inspector } from '../inspector.js';

export const QUEUE_COLUMNS = [
  cut('QUEUE'),
  right('WAITING'),
  spare(4, right('ACTIVE')),
  spare(1, right('DELAYED')),
  right('DEAD'),
  spare(2, right('OLDEST')),
  spare(3, right('WORKERS')),
  cut('STATE'),
];

type QueueRow = QueueInfo & {
  /** Null if the worker processes cannot be read. */
  readonly workers: number | null;
  /** In how many of the processes an order has paused the queue. */
  readonly workersPaused: number | null;
};

/** Rows of the queues that can be read, with the number of processes that work on each, and why others are missing. */
export async function queueRows(context: Pick<Context, 'inspector' | 'values'>, names?: readonly string[]) {
  const { inspector } = context;
  const texts: string[] = [];
  const [{ queues, faults }, workers] = await Promise.all([
    inspector.readableQueues(names && names.length > 0 ? names : undefined),
    inspector.workers().catch((error: unknown) => {
      // On Redis Cluster their records may be on a node that is down, and the queues on others.
      if (!(error instanceof RedisUnavailableError)) throw error;
      texts.push(messageFor(error, context.values['cluster'] === true));
      return null;
    }),
  ]);
  const found = queues.map((queue): QueueRow => {
    if (workers === null) return { ...queue, workers, workersPaused: null };
    const { processes, paused } = servingOf(workers, queue.name);
    return { ...queue, workers: processes, workersPaused: paused };
  });
  const missing = [...faultTexts(faults), ...texts];
  return { found, rows: found.map(rowOf), workers: workers ?? [], missing };
}

function rowOf(queue: QueueRow): Cell[] {
  const { name, counts, oldestWaitingMs, paused, workers, workersPaused } = queue;
  const isAlone = counts.waiting > 0 && workers === 0;
  return [
    name,
    counts.waiting,
    counts.active,
    counts.delayed,
    counts.dead > 0 ? { text: String(counts.dead), style: 'red' } : 0,
    age(oldestWaitingMs),
    isAlone ? { text: '0', style: 'red' } : (workers ?? '?'),
    stateOfQueue(paused, workers, workersPaused),
  ];
}

function stateOfQueue(isPaused: boolean, workers: number | null, workersPaused: number | null): Cell {
  if (isPaused) return { text: 'paused', style: 'yellow' };
  if (workers === null || workersPaused === null) return '?';
  if (workersPaused > 0) return { text: `paused in ${workersPaused} of ${workers}`, style: 'yellow' };
  return workers === 0 ? 'no workers' : 'running';
}

const queues: Command = {
  name: 'queues',
  usage: '[queue…]',
  about: 'lists the queues of the prefix with their counts',
  words: [0, 1_000],
  async run(context) {
    const { found, rows, missing } = await queueRows(context, context.words);
    const { print, prefix, url } = context;
    const advice = found.length + missing.length > 0 || print.isJson ? '' : `; ${await prefixAdvice(url)}`;
    print.rows(found, QUEUE_COLUMNS, rows, `there are no queues with the prefix ${prefix}${advice}`);
    return print.unreadable(missing);
  },
};

/** The state of a process, with the queues that it has paused if it works on others. */
export function stateOfProcess(worker: WorkerInfo): Cell {
  const { state, pools, blockedMs } = worker;
  const quiet = [...new Set(pools.flatMap((pool) => pool.quiet))];
  const paused = [...new Set(pools.flatMap((pool) => pool.paused))].filter((name) => !quiet.includes(name));
  if (state !== 'running') return { text: state, style: 'yellow' };
  const parts = [
    ...(isBlocked(worker) ? [`blocked ${age(blockedMs)}`] : []),
    ...(paused.length > 0 ? [`paused: ${paused.join(' ')}`] : []),
    ...(quiet.length > 0 ? [`quiet: ${quiet.join(' ')}`] : []),
  ];
  return parts.length === 0 ? state : { text: parts.join(', '), style: 'yellow' };
}

const workers: Command = {
  name: 'workers',
  usage: '[queue]',
  about: 'lists worker processes and how busy they are',
  words: [0, 1],
  async run({ inspector, words, print }) {
    const [queue] = words;
    if (queue !== undefined) await inspector.queues([queue]);
    const found = await inspector.allWorkers(queue);
    const all: (WorkerInfo | SilentWorkerInfo)[] = [...found.workers, ...found.silent];
    const rows = all.map((worker): Cell[] => {
      const { host, pid, versions, startedAt, pools, moreQueues = [] } = worker;
      return [
        host,
        pid,
        'silentMs' in worker
          ? { text: `silent ${age(worker.silentMs)}`, style: 'red' }
          : stateOfProcess(worker),
        `${pools.reduce((sum, pool) => sum + pool.running, 0)}/${pools.reduce((sum, pool) => sum + pool.concurrency, 0)}`,
        ageOf(startedAt, inspector),
        versions.godwit,
        [...pools.flatMap((pool) => pool.queues), ...(queue === undefined ? moreQueues : [])].join(' '),
      ];
    });
    const columns = [
      cut('HOST'),
      right('PID'),
      cut('STATE'),
      right('BUSY'),
      spare(2, right('UP')),
      spare(1, { title: 'VERSION' }),
      cut('QUEUES'),
    ];
    print.rows(all, columns, rows, 'there are no worker processes');
    return DONE;
  },
};

export const RUN_COLUMNS = [
  cut('QUEUE'),
  cut('NAME'),
  spare(3, cut('ID')),
  spare(2, right('ATTEMPT')),
  right('SINCE'),
  spare(1, cut('PROCESS')),
];

/** The running jobs of these processes, the longest first. */
export function runsOf(workers: readonly WorkerInfo[]) {
  return workers
    .flatMap(({ host, pid, pools }) =>
      pools.flatMap(({ jobs }) => jobs.map((job) => ({ ...job, host, pid }))),
    )
    .toSorted((a, b) => a.since.getTime() - b.since.getTime());
}

export function runRow(
  { queue, name, id, attempt, since, host, pid }: ReturnType<typeof runsOf>[number],
  inspector: Inspector,
): Cell[] {
  return [queue, name, id, attempt, ageOf(since, inspector), `${host}:${pid}`];
}

const running: Command = {
  name: 'running',
  usage: '[queue]',
  about: 'lists running jobs, the longest first',
  words: [0, 1],
  async run({ inspector, words, print }) {
    const [queue] = words;
    if (queue !== undefined) await inspector.queues([queue]);
    const { workers: alive, silent } = await inspector.allWorkers(queue);
    const runs = runsOf(alive);
    print.rows(
      runs,
      RUN_COLUMNS,
      runs.map((run) => runRow(run, inspector)),
      'no running jobs were reported',
    );
    // One of them may run the job that a person looks for.
    if (silent.length > 0)
      print.line(
        `jobs of ${counted(silent.length, 'silent process', 'silent processes')} are left out; see godwit workers`,
      );
    return DONE;
  },
};

const stats: Command = {
  name: 'stats',
  usage: '<queue>',
  about: 'shows counters by day and job name, and about how much memory of Redis the queue takes',
  words: [1, 1],
  options: {
    days: { type: 'string', about: 'how many days, 1 to 90 (default: 7)' },
    hosts: {
      type: 'boolean',
      about: 'counters by the host on which jobs ran; needs forRoot({ history: true })',
    },
    hours: { type: 'string', about: 'with --hosts: how many hours, 1 to 72 (default: 24)' },
  },
  async run(context) {
    const { inspector, words, print, values } = context;
    const other = values['hosts'] === true ? 'days' : 'hours';
    if (values[other] !== undefined)
      throw new UsageError(`--${other} is for stats ${other === 'days' ? 'without' : 'with'} --hosts`, '');
    await inspector.queues(words);
    if (values['hosts'] === true) return hostStats(context);
    const [found, memoryBytes] = await Promise.all([
      inspector.queue(words[0]!).stats({ days: numberOf(context, 'days', 7) }),
      inspector.memoryBytes(words[0]!),
    ]);
    const names = Object.entries(found.total.byName).map(([name, one]): Cell[] => [
      name === '' ? '(other names)' : name,
      one.processed,
      one.failed,
      one.dead,
      '',
    ]);
    const days = found.days.map(({ date, processed, failed, dead, cancelled }): Cell[] => [
      date,
      processed,
      failed,
      dead,
      cancelled,
    ]);
    const columns = [
      cut('DAY, NAME'),
      right('COMPLETED'),
      right('FAILED'),
      right('DEAD'),
      spare(1, right('CANCELLED')),
    ];
    print.rows({ ...found, memoryBytes }, columns, [...days, ...names], 'nothing');
    if (memoryBytes !== null) print.line(`about ${bytes(memoryBytes)} of Redis, without counters`);
    return DONE;
  },
};

async function hostStats(context: Context): Promise<number> {
  const { inspector, words, print } = context;
  const hours = numberOf(context, 'hours', 24);
  if (hours < 1 || hours > RULES.historyHours)
    throw new UsageError(`--hours must be an integer from 1 to ${RULES.historyHours}, got ${hours}`, '');
  const { queue, from, to, byHost } = await inspector.series(words[0]!, {
    from: Date.now() - hours * HOUR_MS,
  });
  const hosts = Object.entries(byHost).toSorted(
    ([, a], [, b]) => b.completed + b.failed - a.completed - a.failed,
  );
  const rows = hosts.map(([host, { completed, failed, dead, run, lastAt }]): Cell[] => [
    host === '' ? '(other hosts)' : host,
    completed,
    failed > 0 ? { text: String(failed), style: 'yellow' } : 0,
    dead > 0 ? { text: String(dead), style: 'red' } : 0,
    age(run.p50),
    age(run.p95),
    lastAt.toISOString().replace(':00.000Z', 'Z'),
  ]);
  const columns = [
    cut('HOST'),
    right('COMPLETED'),
    right('FAILED'),
    right('DEAD'),
    spare(1, right('RUN 50 %')),
    spare(2, right('RUN 95 %')),
    { title: 'LAST MINUTE' },
  ];
  const none = `no host has counted a run in the last ${hours} h; processes with forRoot({ history: true }) count them`;
  print.rows({ queue, from, to, byHost }, columns, rows, none);
  return DONE;
}

const schedules: Command = {
  name: 'schedules',
  usage: '[queue] [run|next|pause|resume|remove <id>]',
  about:
    'lists schedules with their next time; or runs, pauses, resumes or removes one, or shows its next five times',
  words: [0, 3],
  async run(context) {
    const { inspector, words, print } = context;
    const [queue, act, id] = words;
    if (queue !== undefined) await inspector.queues([queue]);
    if (act !== undefined) return actOnSchedule(context, queue!, act, id);
    const names = queue === undefined ? await inspector.namesOf() : [queue];
    const faults = new Map<string, Error>();
    const read = (name: string) => inspector.queue(name).schedules.list({ limit: 1_000 });
    const all = (await readEach(names, read, faults)).flat();
    const rows = all.map((one): Cell[] => [
      one.queue,
      one.id,
      ruleText(one),
      one.nextAt
        ? one.nextAt.toISOString().replace('.000', '')
        : one.paused
          ? { text: 'paused', style: 'yellow' }
          : 'ended',
      one.fired,
      one.owner ?? '-',
    ]);
    const columns = [
      cut('QUEUE'),
      cut('ID'),
      spare(3, cut('RULE')),
      { title: 'NEXT' },
      spare(2, right('JOBS')),
      spare(1, cut('OWNER')),
    ];
    print.rows(all, columns, rows, 'there are no schedules');
    return print.unreadable(faultTexts(faults));
  },
};

function ruleText({ rule }: ScheduleSnapshot): string {
  if (!rule) return '(of a newer version)';
  if ('cron' in rule && rule.cron !== undefined)
    return `${rule.cron}${rule.tz === undefined ? '' : ` ${rule.tz}`}`;
  return 'every' in rule ? `every ${interval(readDuration(rule.every) ?? 0)}` : '';
}

async function actOnSchedule(
  { inspector, print }: Context,
  queue: string,
  act: string,
  id: string | undefined,
): Promise<number> {
  if (id === undefined)
    throw new UsageError(`schedules ${queue} ${act}: the id of the schedule is missing`, '');
  const { schedules: all } = inspector.queue(queue);
  switch (act) {
    case 'run': {
      const { id: job } = await all.runNow(id);
      print.done(`job ${job} was added`, { schedule: id, job });
      return DONE;
    }
    case 'next': {
      const one = await all.get(id);
      const next = await all.nextRuns(id, 5);
      const zone = one?.rule && 'tz' in one.rule ? one.rule.tz : undefined;
      const tz = zone === 'UTC' ? undefined : zone;
      // Swedish times are in the form of ISO 8601.
      const local = new Intl.DateTimeFormat('sv', { timeZone: tz, dateStyle: 'short', timeStyle: 'medium' });
      const rows = next.map((at): Cell[] => [
        at.toISOString().replace('.000', ''),
        ...(tz === undefined ? [] : [local.format(at)]),
        age(at.getTime() - inspector.producer.engine.now()),
      ]);
      const words = one?.rule && 'cron' in one.rule && one.rule.cron ? cronInWords(one.rule.cron) : null;
      if (one) print.line(`${ruleText(one)}${words === null ? '' : `: ${words}`}`);
      const columns = [
        { title: 'NEXT' },
        ...(tz === undefined ? [] : [spare(1, { title: tz })]),
        right('IN'),
      ];
      print.rows(next, columns, rows, 'it has no further times');
      return DONE;
    }
    case 'pause':
    case 'resume': {
      const changed = await all[act](id);
      print.done(changed ? `${act}d` : 'nothing to change', { schedule: id, changed });
      return DONE;
    }
    case 'remove': {
      if (!(await print.confirm(`Remove the schedule ${id} of queue ${queue}?`))) return FAILED;
      const removed = await all.remove(id);
      print.done(removed ? 'removed' : 'there is no such schedule', { schedule: id, removed });
      return removed ? DONE : 3;
    }
    default:
      throw new UsageError(
        `schedules: ${JSON.stringify(act)} must be one of run, next, pause, resume, remove`,
        '',
      );
  }
}

const PROCESSES: NonNullable<Command['options']> = {
  process: { type: 'string', about: 'only in this worker process: <host>:<pid>, as "workers" prints it' },
  host: { type: 'string', about: 'only in the worker processes of this machine' },
};

function gate(name: 'pause' | 'resume'): Command {
  const word = name === 'pause' ? 'paused' : 'resumed';
  return {
    name,
    usage: '[queue…]',
    about:
      name === 'pause'
        ? 'stops all processes from claiming jobs of the queues; running jobs go on'
        : 'ends a pause',
    words: [0, 1_000],
    options: PROCESSES,
    async run(context) {
      const { inspector, words, values, print } = context;
      if (values['process'] !== undefined || values['host'] !== undefined) return order(context, name);
      if (words.length === 0) throw new UsageError(`${name}: name a queue, --process or --host`, '');
      await inspector.queues(words);
      const results = [];
      for (const queue of words) {
        // oxlint-disable-next-line no-await-in-loop -- in order, so that an error shows how far the command got
        const changed = await inspector.queue(queue)[name]();
        results.push({ queue, changed });
        print.line(`${queue} ${changed ? word : `was ${word} already`}`);
      }
      if (print.isJson) print.json(results);
      return DONE;
    },
  };
}

const quiet: Command = {
  name: 'quiet',
  usage: '[queue…]',
  about: 'stops worker processes from claiming jobs until they end; for use before a deployment',
  words: [0, 1_000],
  options: PROCESSES,
  async run(context) {
    const { words, values, print } = context;
    const where = values['process'] ?? values['host'];
    if (words.length === 0 && where === undefined)
      throw new UsageError('quiet: name a queue, --process or --host', '');
    const what = words.length === 0 ? 'No more jobs' : `No more jobs of ${words.join(', ')}`;
    const who = where === undefined ? 'all processes that work on it now' : String(where);
    if (!(await print.confirm(`${what} for ${who}, until they are restarted?`))) return FAILED;
    return order(context, 'quiet');
  },
};

/** Gives an order to worker processes, for each queue or for all their queues. */
async function order(context: Context, kind: ProcessOrder['kind']): Promise<number> {
  const { inspector, words, print } = context;
  const chosen = given(context, 'process', 'host');
  const results = [];
  for (const queue of words.length === 0 ? [undefined] : words) {
    // oxlint-disable-next-line no-await-in-loop -- in order, so that an error shows how far the command got
    const told = await inspector.processes[kind]({ ...chosen, ...(queue !== undefined && { queue }) });
    results.push(...told.map((one) => ({ ...one, order: kind, queue: queue ?? null })));
    for (const { host, pid } of told)
      print.line(`${host}:${pid} ${kind} ${queue ?? 'all queues'}: order stored`);
  }
  if (print.isJson) print.json(results);
  return DONE;
}

const audit: Command = {
  name: 'audit',
  usage: '<queue>',
  about: 'finds jobs that are not in exactly one place; exit code 4 if there are any',
  words: [1, 1],
  async run({ inspector, words, print }) {
    await inspector.queues(words);
    const report = await inspector.queue(words[0]!).audit();
    const rows = report.violations.map(({ kind, text }): Cell[] => [{ text: kind, style: 'red' }, text]);
    print.rows(
      report,
      [{ title: 'KIND' }, wrapped('WHAT')],
      rows,
      `${counted(report.checked, 'job')} checked, no damage`,
    );
    return rows.length === 0 ? DONE : UNHEALTHY;
  },
};

const repair: Command = {
  name: 'repair',
  usage: '<queue>',
  about: 'repairs what audit finds',
  words: [1, 1],
  async run({ inspector, words, print }) {
    await inspector.queues(words);
    const queue = inspector.queue(words[0]!);
    const { violations } = await queue.audit();
    if (violations.length === 0) {
      print.done('no damage', { repairs: [], checked: 0 });
      return DONE;
    }
    if (!(await print.confirm(`Repair ${counted(violations.length, 'problem')} of queue ${queue.name}?`)))
      return FAILED;
    const report = await queue.repair();
    print.done(counted(report.repairs.length, 'repair'), report);
    return DONE;
  },
};

const obliterate: Command = {
  name: 'obliterate',
  usage: '<queue>',
  about: 'deletes a queue with all its jobs, schedules and counters',
  words: [1, 1],
  options: { force: { type: 'boolean', about: 'delete it even while jobs run' } },
  async run({ inspector, words, values, print }) {
    const [info] = await inspector.queues(words);
    const total = Object.values(info!.counts).reduce((sum, count) => sum + count, 0);
    if (!(await print.confirm(`Delete queue ${info!.name} with its ${counted(total, 'job')}?`)))
      return FAILED;
    await inspector.queue(info!.name).obliterate({ force: values['force'] === true });
    print.done(`queue ${info!.name} with ${counted(total, 'job')} is deleted`, {
      queue: info!.name,
      jobs: total,
    });
    return DONE;
  },
};

export const QUEUE_COMMANDS: readonly Command[] = [
  queues,
  workers,
  running,
  stats,
  schedules,
  gate('pause'),
  gate('resume'),
  quiet,
  audit,
  repair,
  obliterate,
];
