import { isDeepStrictEqual } from 'node:util';
import { recordAction, resultOf } from '../../contract/actions.js';
import { GodwitError, RedisUnavailableError } from '../../errors.js';
import { checkUrl } from '../../options/connection.js';
import type { Queue } from '../../producer/queue.js';
import { type Command, type Context } from './context.js';
import { DONE, FAILED, isOfArguments } from './failure.js';
import { UsageError } from './usage-error.js';
import {
  BULL_STATES,
  HAVE_RUN,
  BullSource,
  type BullState,
  type FoundJob,
  type FoundSchedule,
  type LeftBehind,
} from './bullmq-source.js';
import { cut, right, spare, type Cell } from './table.js';
import { counted } from '../../job/text.js';

/** The result for one queue, or the planned result. */
interface Moved {
  readonly queue: string;
  /** Jobs by the list of BullMQ they were in. */
  readonly jobs: Record<string, number>;
  /** Number of jobs whose id exists here already. */
  alreadyHere: number;
  schedules: number;
  schedulesHere: number;
  /** Options that get lost, with the number of jobs that have them. */
  readonly lost: Record<string, number>;
  readonly left: LeftBehind[];
}

/** Most reported jobs of a queue that cannot be moved. */
const MOST_LEFT = 1_000;

export const migrate: Command = {
  name: 'migrate',
  usage: 'bullmq [queue…]',
  about:
    'copies jobs and schedules of BullMQ to queues with the same names; without --apply it only prints what it would copy',
  words: [1, 1_000],
  options: {
    from: { type: 'string', about: 'URL of the Redis that BullMQ uses (default: that of --url)' },
    'from-prefix': { type: 'string', about: 'prefix of the keys of BullMQ (default: bull)' },
    to: { type: 'string', about: 'name of the queue here, if one queue is copied (default: the same name)' },
    failed: { type: 'boolean', about: 'copy failed jobs too; they run again here' },
    apply: { type: 'boolean', about: 'copy, not only print what would be copied' },
  },
  async run(context) {
    const { words, values, url } = context;
    const [kind, ...named] = words;
    if (kind !== 'bullmq') throw new UsageError(`migrate: ${JSON.stringify(kind)} is not bullmq`, '');
    const from = checkUrl((values['from'] as string | undefined) ?? url, '--from');
    const source = new BullSource(from, (values['from-prefix'] as string | undefined) ?? 'bull');
    try {
      await source.open();
      const there = await source.queues();
      const unknown = named.find((name) => !there.includes(name));
      if (unknown !== undefined)
        throw new UsageError(`BullMQ has no queue ${unknown}; it has ${there.join(', ') || 'none'}`, ' ');
      const names = named.length > 0 ? named : there;
      if (values['to'] !== undefined && names.length !== 1)
        throw new UsageError(`--to is for one queue, got ${names.length}`, '');
      return await run(context, source, names);
    } catch (error) {
      if (error instanceof GodwitError || error instanceof UsageError) throw error;
      const { name, message } = error as Error;
      // For example, the user has no rights to the keys of BullMQ.
      if (name === 'ReplyError') throw new UsageError(`--from: ${message}`, ' ');
      const applied = values['apply'] === true ? 'unknown' : 'no';
      throw new RedisUnavailableError('the Redis of BullMQ', applied, source.fault ?? message);
    } finally {
      source.close();
    }
  },
};

async function run(context: Context, source: BullSource, asked: readonly string[]): Promise<number> {
  const { print, values } = context;
  const isApplied = values['apply'] === true;
  const faults = asked.flatMap((name) => nameFault(context, name) ?? []);
  const names = asked.filter((name) => !faults.some(({ queue }) => queue === name));
  if (isApplied) {
    const open: string[] = [];
    // oxlint-disable-next-line no-await-in-loop -- few queues
    for (const name of names) if (!(await source.isPaused(name))) open.push(name);
    if (open.length > 0)
      throw new UsageError(
        `pause ${open.join(', ')} in BullMQ first (await queue.pause()), or its workers would run the same jobs`,
        ' ',
      );
    const isAsked = names.length > 0;
    if (isAsked && !(await print.confirm(`Copy jobs and schedules of ${names.join(', ')} to Godwit?`)))
      return FAILED;
  }
  const all: Moved[] = [...faults];
  // oxlint-disable-next-line no-await-in-loop -- in order, so that an error shows how far the command got
  for (const name of names)
    all.push(await (isApplied ? recordedMove(context, source, name) : move(context, source, name, false)));
  show(all, isApplied, print);
  const isLeft = all.some(({ left }) => left.some(({ why }) => why !== HAVE_RUN));
  return isLeft ? FAILED : DONE;
}

/** The queue here. BullMQ allows more names. */
const queueFor = ({ inspector, values }: Context, name: string): Queue =>
  inspector.producer.queue((values['to'] as string | undefined) ?? name);

/** A queue that cannot be copied because of its name. */
function nameFault(context: Context, name: string): Moved | undefined {
  try {
    queueFor(context, name);
    return undefined;
  } catch (error) {
    if (context.values['to'] !== undefined) throw error;
    const why = `${reasonOf(error)}; copy it alone with --to <another name>`;
    return { ...noneMoved(name), left: [{ what: 'the queue', why }] };
  }
}

function noneMoved(queue: string): Moved {
  return { queue, jobs: {}, alreadyHere: 0, schedules: 0, schedulesHere: 0, lost: {}, left: [] };
}

/** Records one action for the queue, not one for each job. */
async function recordedMove(context: Context, source: BullSource, name: string): Promise<Moved> {
  const { actor, inspector } = context;
  const { actions } = inspector.producer.engine;
  const action = { actor, action: 'queue.migrate', queue: queueFor(context, name).name, target: 'bullmq' };
  await recordAction(actions, { ...action, count: null, result: 'started' });
  try {
    const moved = await move(context, source, name, true);
    const added = Object.values(moved.jobs).reduce((sum, one) => sum + one, 0) - moved.alreadyHere;
    await recordAction(actions, { ...action, count: added + moved.schedules, result: 'ok' });
    return moved;
  } catch (error) {
    await recordAction(actions, { ...action, count: null, result: resultOf(error) });
    throw error;
  }
}

async function move(context: Context, source: BullSource, name: string, isApplied: boolean): Promise<Moved> {
  const queue = queueFor(context, name);
  const startedAt = Date.now();
  const moved: Moved = { ...noneMoved(name), left: await source.others(name) };
  const refused = new Set<string>();
  /** Copies the jobs of these lists. Returns how many of them are older than the command, because new ones may always be added. */
  const pass = async (states: readonly BullState[]): Promise<number> => {
    let older = 0;
    for (const state of states)
      for await (const { jobs, left } of source.jobs(name, state, refused)) {
        moved.left.push(...left.slice(0, Math.max(0, MOST_LEFT - moved.left.length)));
        const added = await addAll(queue, jobs, moved, refused, isApplied);
        if (isApplied) await source.markMoved(name, added);
        moved.jobs[state] = (moved.jobs[state] ?? 0) + added.length;
        for (const lost of added.flatMap((job) => job.lost)) moved.lost[lost] = (moved.lost[lost] ?? 0) + 1;
        older += added.filter(({ stamp }) => Number(stamp) <= startedAt).length;
      }
    return older;
  };
  const hasFailed = context.values['failed'] === true;
  const states = BULL_STATES.filter((state) => state !== 'failed' || hasFailed);
  await pass(states);
  // A job that becomes due moves from `delayed` to a list that was read before. So `delayed` is read first from now on.
  const again = ['delayed', ...states.filter((state) => state !== 'delayed')] as const;
  // oxlint-disable-next-line no-await-in-loop -- one pass after another
  while (isApplied && (await pass(again)) > 0);
  let failed = 0;
  if (!hasFailed)
    for await (const { jobs, left } of source.jobs(name, 'failed', refused))
      failed += jobs.length + left.length;
  if (failed > 0)
    moved.left.push({
      what: counted(failed, 'failed job'),
      why: 'they failed; --failed adds them to run again',
    });
  const { schedules, left } = await source.schedules(name);
  moved.left.push(...left);
  // oxlint-disable-next-line no-await-in-loop -- few schedules
  for (const one of schedules) await addSchedule(queue, one, moved, isApplied);
  return moved;
}

/** Adds a page of jobs, or only checks them. Refused jobs stay in BullMQ. Returns the others. */
async function addAll(
  queue: Queue,
  jobs: readonly FoundJob[],
  moved: Moved,
  refused: Set<string>,
  isApplied: boolean,
): Promise<FoundJob[]> {
  const answers = await Promise.allSettled(jobs.map((job) => addOne(queue, job, isApplied)));
  return jobs.filter(({ id }, i) => {
    const answer = answers[i]!;
    if (answer.status === 'fulfilled' && answer.value !== 'taken') {
      if (answer.value === 'here') moved.alreadyHere += 1;
      return true;
    }
    const why = answer.status === 'fulfilled' ? 'another job has this id here' : reasonOf(answer.reason);
    refused.add(id);
    if (moved.left.length < MOST_LEFT) moved.left.push({ what: `job ${id}`, why });
    return false;
  });
}

/** Whether the job was added, exists here already, or its id is taken by another job, such as one of another queue of BullMQ. */
async function addOne(queue: Queue, job: FoundJob, isApplied: boolean): Promise<'added' | 'here' | 'taken'> {
  const { id, name, data, options } = job;
  if (!isApplied) {
    queue.checkAdd(name, data, options);
    return 'added';
  }
  if (!(await queue.add(name, data, options)).duplicate) return 'added';
  const there = await queue.get(id);
  return there === null || (there.name === name && isDeepStrictEqual(there.data, data)) ? 'here' : 'taken';
}

/** Why something was refused. Other errors, such as an unreachable Redis, are thrown. */
function reasonOf(error: unknown): string {
  if (!(error instanceof GodwitError && isOfArguments(error))) throw error;
  return error.message;
}

async function addSchedule(
  queue: Queue,
  { id, rule, template }: FoundSchedule,
  moved: Moved,
  isApplied: boolean,
): Promise<void> {
  try {
    // The schedule exists here, and may have been changed since an earlier run.
    if ((await queue.schedules.get(id)) !== null) {
      moved.schedulesHere += 1;
      return;
    }
    if (isApplied) await queue.schedules.upsert(id, rule, template);
    else queue.schedules.checkUpsert(id, rule, template);
    moved.schedules += 1;
  } catch (error) {
    moved.left.push({ what: `schedule ${id}`, why: reasonOf(error) });
  }
}

function show(all: readonly Moved[], isApplied: boolean, print: Context['print']): void {
  const columns = [
    cut('QUEUE'),
    right('WAITING'),
    spare(3, right('PRIORITIZED')),
    right('DELAYED'),
    right('FAILED'),
    spare(1, right('HERE ALREADY')),
    spare(2, right('SCHEDULES')),
  ];
  const rows = all.map(({ queue, jobs, alreadyHere, schedules }): Cell[] => [
    queue,
    (jobs['wait'] ?? 0) + (jobs['paused'] ?? 0),
    jobs['prioritized'] ?? 0,
    jobs['delayed'] ?? 0,
    jobs['failed'] ?? 0,
    alreadyHere,
    schedules,
  ]);
  print.rows({ applied: isApplied, queues: all }, columns, rows, 'BullMQ has no queues with this prefix');
  if (print.isJson) return;
  for (const { queue, lost, left } of all) {
    for (const [what, count] of Object.entries(lost))
      print.safeLine(print.paint('yellow', `${queue}: ${counted(count, 'job')} without`), what);
    for (const { what, why } of left.slice(0, 20))
      print.safeLine(print.paint('yellow', `${queue}: left`), `${what}: ${why}`);
    if (left.length > 20) print.line(`${queue}: and ${left.length - 20} more; --json has all`);
  }
  if (!isApplied) print.line('nothing was changed; to copy, add --apply');
}
