import { RedisUnavailableError } from '../../errors.js';
import { listed, quoted } from '../../job/text.js';
import type { GroupChange, LimitChange } from '../../options/limit-changes.js';
import { infoOf, reasonOf, usersOf, type LimitInfo } from '../../producer/limit-info.js';
import { listFirstGroups, type QueueLimits } from '../../producer/queue-limits.js';
import { didYouMean, UsageError } from './usage-error.js';
import { checkDuration, given, numberOf, rateOf, type Command, type Context } from './context.js';
import { DONE, NotThereError, unreadableText } from './failure.js';
import { age, cut, right, spare, wrapped, type Cell } from './table.js';

const COLUMNS = [
  cut('OF'),
  spare(3, { title: 'RATE' }),
  spare(1, right('LEFT')),
  spare(2, right('RUNNING')),
  right('WAITING'),
  wrapped('STATE'),
] as const;

/** The options of a change that limits and groups have in common. */
const CHANGE_OPTIONS = {
  rate: {
    type: 'string',
    about: 'for set: the most starts per time, e.g. 50/s or 100/5m; none removes the rate',
  },
  concurrency: { type: 'string', about: 'for set: the most jobs that run at once; none removes the limit' },
} as const;

const limits: Command = {
  name: 'limits',
  usage: '<queue> [set|clear|hold <time>|release]',
  about: 'shows the limits of a queue, its job names and shared limits; or changes one',
  words: [1, 3],
  options: {
    name: { type: 'string', about: 'the limit of this job name' },
    shared: { type: 'string', about: 'the shared limit with this name' },
    ...CHANGE_OPTIONS,
    new: { type: 'boolean', about: 'for set --shared: create the limit if there is none with this name' },
  },
  async run(context) {
    const { inspector, words, print } = context;
    const [name, act, time] = words as [string, string?, string?];
    checkUse(context);
    const [info] = await inspector.queues([name]);
    if (act !== undefined) return change(context, name, act, time);
    const { limits: ofEngine } = inspector.producer.engine;
    const missing: string[] = [];
    const own = await ofEngine.list(name);
    const shared = await ofEngine.shared().catch((error: unknown) => {
      // On Redis Cluster they may be on another node than the queue.
      if (!(error instanceof RedisUnavailableError)) throw error;
      missing.push(unreadableText('the shared limits', error));
      return [];
    });
    const all = [...own, ...shared].map(infoOf);
    const rows = all.map((limit) => rowOf(limit, info!.counts.waiting));
    print.rows(all, COLUMNS, rows, '');
    // All shared limits are listed, because the workers of this queue may not run now.
    for (const limit of shared) {
      const queues = usersOf(limit);
      const by = queues.length > 0 ? `is used by ${listed(queues)}` : 'is not used now';
      print.line(`the shared limit ${limit.field.slice(2)} ${by}`);
    }
    return print.unreadable(missing);
  },
};

/** Refuses what the act would ignore: a person would believe that it was done. */
function checkUse({ words, values }: Context): void {
  const [, act, time] = words;
  const unused = ['name', 'shared', 'rate', 'concurrency', 'new'].find(
    (option) => values[option] !== undefined && !(act === 'set' || (act !== undefined && OF.has(option))),
  );
  if (unused !== undefined)
    throw new UsageError(`limits: --${unused} is for ${OF.has(unused) ? 'a change' : 'limits set'}`, '');
  if (time !== undefined && act !== 'hold')
    throw new UsageError(`limits ${act}: unexpected argument ${quoted(time.slice(0, 100))}`, '');
}

/** Options that name the limit to change. */
const OF: ReadonlySet<string> = new Set(['name', 'shared']);

async function change(
  context: Context,
  queue: string,
  act: string,
  time: string | undefined,
): Promise<number> {
  const { inspector, print, values } = context;
  const { name, shared } = given(context, 'name', 'shared');
  if (name !== undefined && shared !== undefined)
    throw new UsageError('limits: --name or --shared, not both', '');
  const of = inspector.queue(queue).limits;
  const target = name === undefined ? {} : { name };
  const one = shared === undefined ? null : of.shared(shared);
  if (one && !(act === 'set' && values['new'] === true)) await checkShared(of, one.name);
  switch (act) {
    case 'set': {
      const changed = changeOf(context);
      if (Object.keys(changed).length === 0)
        throw new UsageError('limits set: give --rate or --concurrency', '');
      await (one ? one.set(changed, { create: true }) : of.set(changed, target));
      break;
    }
    case 'clear':
      await (one ? one.clear() : of.clear(target));
      break;
    case 'hold':
      if (time === undefined) throw new UsageError('limits hold: give a time, e.g. 30s', '');
      checkDuration(time, 'the time of limits hold');
      await (one ? one.hold(time as `${number}s`) : of.hold(time as `${number}s`, target));
      break;
    case 'release':
      await (one ? one.release() : of.release(target));
      break;
    default:
      throw new UsageError(`limits: ${JSON.stringify(act)} is not one of set, clear, hold, release`, '');
  }
  print.done('done', { queue, act, name: name ?? null, shared: shared ?? null });
  return DONE;
}

function changeOf(context: Context): LimitChange {
  const { rate, concurrency } = context.values;
  return {
    ...(rate !== undefined && { rate: rate === 'none' ? null : rateOf(context)! }),
    ...(concurrency !== undefined && {
      concurrency: concurrency === 'none' ? null : numberOf(context, 'concurrency', 0),
    }),
  };
}

/** A change of a shared limit that no queue uses would do nothing. */
async function checkShared(of: QueueLimits, name: string): Promise<void> {
  const known = (await of.listShared()).map(({ name: one }) => one ?? '');
  if (known.includes(name)) return;
  const which = known.length === 0 ? 'there are none' : `there are ${known.join(', ')}`;
  throw new NotThereError(
    `there is no shared limit ${quoted(name)}; ${which}${didYouMean(name, known)} (set --new creates it)`,
  );
}

const groups: Command = {
  name: 'groups',
  usage: '<queue> [show|pause|resume|release|set|clear <group>]',
  about:
    'lists groups with jobs or limits of their own, first those that a dead job stops; or shows or changes one',
  words: [1, 3],
  options: {
    limit: { type: 'string', about: 'the most groups to list (default: 100)' },
    ...CHANGE_OPTIONS,
    'max-size': { type: 'string', about: 'for set: the most jobs that wait; none removes the limit' },
    weight: { type: 'string', about: 'for set: how many jobs start for each one of a group with weight 1' },
  },
  async run(context) {
    const { inspector, words, values, print } = context;
    const [name, act, group] = words as [string, string?, string?];
    const unused = GROUP_CHANGES.find((option) => values[option] !== undefined && act !== 'set');
    if (unused !== undefined) throw new UsageError(`groups: --${unused} is for groups set`, '');
    await inspector.queues([name]);
    if (act === undefined) return listGroups(context, name);
    if (!isGroupAct(act))
      throw new UsageError(`groups: ${JSON.stringify(act)} is not one of ${GROUP_ACTS.join(', ')}`, '');
    if (group === undefined) throw new UsageError(`groups ${act}: the name of the group is missing`, '');
    const handle = inspector.queue(name).group(group);
    if (act === 'show') {
      const state = await handle.state();
      print.rows(state, COLUMNS, [rowOf(state)], '');
      const reason = reasonOf(state);
      if (reason) print.line(`no job of it starts: ${reason.text}`);
      return DONE;
    }
    await (act === 'set' ? handle.set(groupChangeOf(context)) : handle[act]());
    print.done(PAST[act], { queue: name, group, act });
    return DONE;
  },
};

const GROUP_ACTS = ['show', 'pause', 'resume', 'release', 'set', 'clear'] as const;
type GroupAct = (typeof GROUP_ACTS)[number];
const PAST: Readonly<Record<Exclude<GroupAct, 'show'>, string>> = {
  pause: 'paused',
  resume: 'resumed',
  release: 'released',
  set: 'done',
  clear: 'cleared',
};
const GROUP_CHANGES = [...Object.keys(CHANGE_OPTIONS), 'max-size', 'weight'];

function isGroupAct(act: string): act is GroupAct {
  return (GROUP_ACTS as readonly string[]).includes(act);
}

function groupChangeOf(context: Context): GroupChange {
  const { 'max-size': maxSize, weight } = context.values;
  const change = {
    ...changeOf(context),
    ...(maxSize !== undefined && { maxSize: maxSize === 'none' ? null : numberOf(context, 'max-size', 0) }),
    ...(weight !== undefined && { weight: Number(weight) }),
  };
  if (Object.keys(change).length === 0)
    throw new UsageError('groups set: give --rate, --concurrency, --max-size or --weight', '');
  return change;
}

async function listGroups(context: Context, queue: string): Promise<number> {
  const { inspector, print } = context;
  const limit = numberOf(context, 'limit', 100);
  const first = await listFirstGroups(inspector.producer.engine, queue, limit);
  const all = first.groups.slice(0, limit);
  const hasMore = first.hasMore || all.length < first.groups.length;
  const rows = all.map((group) => rowOf(group));
  print.rows({ groups: all, hasMore }, COLUMNS, rows, 'no group has jobs or limits of its own');
  if (hasMore) print.line(`there are more: --limit 1000, or godwit groups ${queue} show <group>`);
  if (all.some(({ isStopped }) => isStopped))
    print.line(`a dead job stops its group until you retry or remove it: godwit retry ${queue} <id>`);
  if (all.some(isByRunning))
    print.line("fairness 'in-flight': the group with the fewest running jobs starts the next one");
  return DONE;
}

/**
 * @param ofQueue how many jobs of the queue wait.
 */
function rowOf(limit: LimitInfo, ofQueue = 0): Cell[] {
  const { rate, left, concurrency, running } = limit;
  return [
    ofWhat(limit),
    rate ? `${rate.max} in ${age(rate.perMs)}` : '-',
    left ?? '-',
    concurrency === null ? running || '-' : `${running}/${concurrency}`,
    waitingText(limit, ofQueue),
    stateOf(limit),
  ];
}

function ofWhat({ of, name, fairness }: LimitInfo): string {
  if (name !== null) return `${of} ${name}`;
  if (of !== 'groups') return 'the queue';
  return isByRunning({ fairness }) ? 'each group (in-flight)' : 'each group';
}

/** Whether the group with the fewest running jobs starts the next one. */
function isByRunning({ fairness }: Pick<LimitInfo, 'fairness'>): boolean {
  return fairness === 'in-flight';
}

/** The limits of all groups and of several queues have no jobs of their own. */
function waitingText({ of, waiting, maxSize }: LimitInfo, ofQueue: number): Cell {
  if (of === 'queue') return ofQueue;
  if (of === 'groups' || of === 'shared') return '-';
  return maxSize === null ? waiting : `${waiting}/${maxSize}`;
}

function stateOf(limit: LimitInfo): Cell {
  const { paused, heldForMs, breaker, left, nextInMs, isLive, holder, isStopped, retryBudget } = limit;
  const isBusy = limit.concurrency !== null && limit.running >= limit.concurrency;
  const warn = (text: string): Cell => ({ text, style: 'yellow' });
  if (paused) return warn('paused');
  if (heldForMs > 0 && heldForMs >= nextInMs) return warn(`held for ${age(heldForMs)}`);
  if (breaker && breaker.state !== 'closed')
    return warn(`breaker ${breaker.state}${nextInMs > 0 ? ` for ${age(nextInMs)}` : ''}`);
  if (left !== null && left < 1) return warn(`next in ${age(nextInMs)}`);
  if (isStopped) return warn(`stopped by ${holder}`);
  if (holder !== null) return warn(`after ${holder}`);
  if (retryBudget && retryBudget.delayMs > 0) return warn(`retries wait ${age(retryBudget.delayMs)}`);
  if (isBusy) return 'busy';
  // Not 'open': that is the word for a circuit breaker that lets no job start.
  return isLive ? 'set at run time' : 'free';
}

export const LIMIT_COMMANDS: readonly Command[] = [limits, groups];
