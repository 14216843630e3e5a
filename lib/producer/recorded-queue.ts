import {
  idText,
  recorded,
  type RecordedMethod,
  type RecordedMethods,
  type Recorder,
} from '../contract/actions.js';
import type { AddResult } from './add-result.js';

/** The methods that handles with an actor record. A test fails if a method is neither here nor in its list of reads. */

const byId = (action: string): RecordedMethod => ({ action, target: ([id]) => idText(id) });

/** By an id or a filter. */
const byChoice = (action: string): RecordedMethod => ({
  action,
  target: ([which]) => (typeof which === 'string' ? idText(which) : filterText(which)),
  isLong: ([which]) => typeof which === 'object' && which !== null,
});

const isNew = ({ duplicate, dropped }: Pick<AddResult, 'duplicate' | 'dropped'>): number =>
  duplicate || dropped ? 0 : 1;

/** By a name or a definition. */
const ofJob = (job: any): unknown => (typeof job === 'string' ? job : job?.name);

const ADD: RecordedMethod = {
  action: 'job.add',
  target: ([job, , options]) => idText(options?.id ?? ofJob(job)),
  idOf: ({ id }) => idText(id),
  count: isNew,
};

const QUEUE: RecordedMethods = {
  add: ADD,
  addBulk: {
    action: 'job.add',
    target: ([job, items]) => (items === undefined ? '' : ofJob(job)),
    count: (results: readonly AddResult[]) => results.filter(isNew).length,
  },
  addAndWait: { ...ADD, withCallback: ([job, data, options], onAdded) => [job, data, options, onAdded] },
  update: {
    action: 'job.update',
    target: ([first, second]) => idText(typeof first === 'string' ? first : second),
  },
  retry: byId('job.retry'),
  promote: byChoice('job.promote'),
  cancel: {
    ...byChoice('job.cancel'),
    count: (answer) => (typeof answer === 'number' ? answer : answer === 'not-found' ? 0 : 1),
  },
  remove: byChoice('job.remove'),
  pause: { action: 'queue.pause' },
  resume: { action: 'queue.resume' },
  repair: { action: 'queue.repair', count: ({ repairs }) => repairs.length },
  obliterate: { action: 'queue.obliterate' },
  publish: byId('queue.publish'),
};

const DEAD: RecordedMethods = { retry: byChoice('job.retry') };

const SCHEDULES: RecordedMethods = {
  upsert: { ...byId('schedule.upsert'), count: ({ outcome }) => (outcome === 'unchanged' ? 0 : 1) },
  remove: byId('schedule.remove'),
  pause: byId('schedule.pause'),
  resume: byId('schedule.resume'),
  runNow: byId('schedule.run'),
};

const LIMITS: RecordedMethods = {
  set: {
    action: 'limit.set',
    target: ([change, of]) => limitText(change, of),
  },
  clear: { action: 'limit.clear', target: ([of]) => nameOf(of) },
  hold: { action: 'limit.hold', target: ([time, of]) => [nameOf(of), time].join(' ').trim() },
  release: { action: 'limit.release', target: ([of]) => nameOf(of) },
};

const GROUP: RecordedMethods = {
  set: { action: 'group.set', target: ([change]) => changeText(change) },
  clear: { action: 'group.clear' },
  pause: { action: 'group.pause' },
  resume: { action: 'group.resume' },
  release: { action: 'group.release' },
};

const BULK_ACTS: RecordedMethods = {
  start: {
    action: 'bulk.start',
    target: ([kind, filter]) => `${String(kind)} ${filterText(filter ?? {})}`,
    count: () => 1,
  },
  stop: byId('bulk.stop'),
  resume: byId('bulk.resume'),
};

interface QueueParts {
  readonly schedules: object;
  readonly dead: object;
  readonly limits: { shared(name: string): object };
  readonly bulkActs: { for(host: { readonly actor: string }): object };
  group(name: string): object;
  as(actor: string): object;
}

/** The handle of a queue that records what `actor` does with it. */
export function recordedQueue<Handle extends QueueParts>(base: Handle, recorder: Recorder): Handle {
  const handle = recorded(base, QUEUE, recorder);
  const limits = recorded(base.limits, LIMITS, recorder);
  const part = (of: object, name: string, value: unknown) => Object.defineProperty(of, name, { value });
  part(limits, 'shared', (name: string) =>
    recorded(base.limits.shared(name), LIMITS, { ...recorder, prefix: `shared ${name}` }),
  );
  part(handle, 'limits', limits);
  part(handle, 'bulkActs', recorded(base.bulkActs.for({ actor: recorder.actor }), BULK_ACTS, recorder));
  part(handle, 'dead', recorded(base.dead, DEAD, recorder));
  part(handle, 'schedules', recorded(base.schedules, SCHEDULES, recorder));
  part(handle, 'group', (name: string) => recorded(base.group(name), GROUP, { ...recorder, prefix: name }));
  part(handle, 'as', (actor: string) => base.as(actor));
  return handle;
}

/** Fields of filters. The values in `where` are data of jobs, so only its fields are recorded. */
const FILTER_FIELDS = [
  'state',
  'name',
  'group',
  'reason',
  'error',
  'errorText',
  'priority',
  'worker',
  'workers',
  'contains',
  'olderThan',
  'newerThan',
  'limit',
] as const;

/** A filter as it is recorded. */
export function filterText(given: any): string {
  const where = given.where === undefined ? {} : { where: Object.keys(given.where as object) };
  return JSON.stringify({ ...picked({ ...given, name: oneName(given.name) }, FILTER_FIELDS), ...where });
}

/** Several names as one text. The entry is written before the call checks the names, so wrong ones are left out here. */
function oneName(name: unknown): unknown {
  return Array.isArray(name) ? name.filter((one) => typeof one === 'string').join(', ') : name;
}

/** Fields of changes of limits, and of the rules in them. A caller may pass others, which are refused. */
const CHANGE_FIELDS = ['concurrency', 'maxSize', 'weight', 'paused'] as const;
const RULE_FIELDS = {
  rate: ['max', 'per', 'window', 'burst'],
  breaker: ['failures', 'ratio', 'window', 'openFor', 'probes'],
  retryBudget: ['max', 'per', 'percent'],
} as const;

function changeText(given: any): string {
  const rules = Object.entries(RULE_FIELDS).flatMap(([field, fields]): [string, unknown][] => {
    const rule: unknown = given[field];
    return rule === undefined ? [] : [[field, rule === null ? null : picked(rule, fields)]];
  });
  return JSON.stringify({ ...picked(given, CHANGE_FIELDS), ...Object.fromEntries(rules) });
}

function picked(given: any, fields: readonly string[]): Readonly<Record<string, unknown>> {
  const found = fields.flatMap((field): [string, unknown][] => {
    const value: unknown = given[field];
    const isPlain = value === null || ['string', 'number', 'boolean'].includes(typeof value);
    return isPlain ? [[field, value]] : [];
  });
  return Object.fromEntries(found);
}

/** A limit that is not that of the queue, as it is recorded. */
export function nameOf(of: any): string {
  return of?.name === undefined ? '' : `name ${String(of.name)}`;
}

/** A change of a limit as it is recorded. `of`: the name, if it is not the limit of the queue. */
export function limitText(change: unknown, of: unknown): string {
  return [nameOf(of), changeText(change)].join(' ').trim();
}
