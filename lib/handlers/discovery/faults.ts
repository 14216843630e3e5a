import { listed, namedQueues } from '../../job/text.js';

/**
 * The messages about mistakes in decorated classes. Each names the class and the method, and says what to do. One
 * `BootstrapError` lists all of them.
 */
export const faults = {
  controller: (className: string) =>
    `${className} is a controller with @Processor; make it a provider, because controllers only answer requests`,

  transient: (className: string) =>
    `${className} is transient; a processor has one instance for all its jobs, or with Scope.REQUEST one for each job: ` +
    `change its scope`,

  providedTwice: (className: string, modules: readonly string[]) =>
    `the processor ${className} is provided ${count(modules.length)} (${listed(modules)}), ` +
    `so it has an instance in each; provide it in one module and export it from there`,

  withoutProcessor: (place: string, handle: string, className: string) =>
    `${place} has ${handle}, but ${className} has no @Processor; add @Processor('queue') to the class` +
    (handle.startsWith('@OnJob') ? `, or use @OnQueueEvent` : ''),

  noHandlers: (className: string, queues: readonly string[]) =>
    `${className} is a processor of ${namedQueues(queues)} and has no handler; put @Handle('name') on one of its methods`,

  noHandlerFor: (queue: string, classNames: readonly string[]) =>
    `nothing handles the jobs of queue '${queue}', which ${listed(classNames)} ${classNames.length === 1 ? 'works' : 'work'} on; ` +
    `put @Handle('name') on a method, or remove the queue from @Processor`,

  noQueues: (className: string, received: string) =>
    `@Processor of ${className} names no queue, got ${received}; ` +
    `pass a name, a list of names in strict order, or names with weights: { critical: 6, default: 3 }`,

  queueTwice: (className: string, queue: string) =>
    `@Processor of ${className}: queue '${queue}' is in the list twice; name it once`,

  weight: (className: string, queue: string, received: string) =>
    `@Processor of ${className}: the weight of queue '${queue}' must be an integer from 1 to 1000, got ${received}`,

  severalPools: (queue: string, asked: readonly { className: string; group: string }[]) =>
    `queue '${queue}' can belong to only one pool, but is in several: ` +
    `${listed(asked.map((one) => `${one.className} (${one.group})`))}; give them the same queues, or name the queue in one of them`,

  argument: (place: string, why: string) => `${place}: ${why}`,

  hiddenOverride: (place: string, base: string, handle: string) =>
    `${place} overrides ${base}, which has ${handle}, and so hides it; ` +
    `decorate the override too, or give it another name`,

  otherQueue: (
    place: string,
    jobName: string,
    definedFor: string,
    className: string,
    queues: readonly string[],
  ) =>
    `${place} handles '${jobName}', which is defined for queue '${definedFor}', ` +
    `but ${className} works on ${namedQueues(queues)}; move it to a processor of '${definedFor}'`,

  noGroupField: (queue: string, field: string, jobName: string, label: string) =>
    `registerQueue('${queue}').groups.by reads the group from the field '${field}' of the data, ` +
    `but the schema of job '${jobName}' (${label}) has no such field; add it to the schema, or change groups.by`,

  misplacedSchedule: (schedule: string, place: string, what: string) =>
    `${schedule} is on ${place}, which is ${what}; ` +
    `put it next to @Handle on an instance method with a plain name`,

  scheduleWithoutHandler: (schedule: string, place: string) =>
    `${schedule} is on ${place}, which has no @Handle; add @Handle('name') to run the jobs that the schedule adds`,

  scheduleName: (schedule: string, place: string, why: string) =>
    `${schedule} of ${place} needs the option "name", because its method ${why}`,

  scheduleNameType: (schedule: string, place: string, received: string) =>
    `${schedule} of ${place}.name must be the name of a job, got ${received}`,

  scheduleForOthers: (schedule: string, place: string, jobName: string) =>
    `${schedule} of ${place} adds jobs '${jobName}', which ${place} does not handle; ` +
    `use a name that it handles, or put the schedule on the method that does`,

  scheduleQueue: (schedule: string, place: string, queues: readonly string[]) =>
    `${schedule} of ${place} needs the option "queue", because its processor works on ${listed(queues)}`,

  scheduleOtherQueue: (schedule: string, place: string, queue: string, queues: readonly string[]) =>
    `${schedule} of ${place} is for queue ${queue}, but its processor works on ${listed(queues)}`,

  duplicateSchedule: (queue: string, id: string, places: readonly string[]) =>
    `schedule '${id}' of queue '${queue}' is declared ${count(places.length)}: ${listed(places)}; give each its own id`,

  duplicateHandler: (queue: string, jobName: string, places: readonly string[]) =>
    `job '${jobName}' of queue '${queue}' has ${places.length} handlers: ${listed(places)}; keep one`,

  duplicateCatchAll: (queue: string, places: readonly string[]) =>
    `queue '${queue}' has ${places.length} handlers for every other job: ${listed(places)}; ` +
    `keep one @Handle() without a name`,

  generator: (place: string) =>
    `${place} is a generator, so a call would return before its body runs; make it an async method, or return an Observable`,

  batchTooLarge: (place: string, size: number, concurrency: number) =>
    `${place} takes batches of up to ${size} jobs, but its pool runs ${concurrency} jobs at once, and each job of a batch takes a slot; ` +
    `set concurrency to at least ${size}, or size to at most ${concurrency}`,

  batchAboveLimit: (place: string, minSize: number, limit: string, most: number) =>
    `${place} waits for batches of at least ${minSize} jobs, but ${limit} lets at most ${most} run at once, so each batch would wait for its timeout; ` +
    `set minSize to at most ${most}`,

  batchAboveRate: (place: string, minSize: number, limit: string, most: number, timeoutMs: number) =>
    `${place} waits for batches of at least ${minSize} jobs, but ${limit} lets at most ${most} start in its timeout of ${timeoutMs} ms, so each batch would wait for it; ` +
    `set minSize to at most ${most}, or a longer timeout`,

  batchScope: (place: string, className: string) =>
    `${place} is on ${className}, which has an instance for each job, itself or through something it injects; ` +
    `a batch has many jobs: make ${className} a singleton, or use @Handle`,

  batchParameter: (place: string, index: number) =>
    `parameter ${index + 1} of ${place} has a decorator, but a batch has many jobs; take them as the first parameter, and the batch as the second`,

  batchAndHandle: (place: string) =>
    `${place} has both @Handle and @HandleBatch, which call it with different arguments; put one of them on another method`,

  ambiguousPatterns: (queue: string, a: Pattern, b: Pattern) =>
    `the patterns '${a.jobName}' (${a.label}) and '${b.jobName}' (${b.label}) of queue '${queue}' fit some of the same job names, ` +
    `and neither contains the other; make one narrower, or handle those names in one method`,

  concurrencyConflict: (
    queues: readonly string[],
    asked: readonly { place: string; concurrency: number }[],
  ) =>
    `the processors of ${namedQueues(queues)} share one pool, but have different values for concurrency: ` +
    `${listed(asked.map((one) => `${one.place} ${one.concurrency}`))}; set it in one of them`,

  listenerScope: (
    place: string,
    listener: string,
    className: string,
    scope: 'request-scoped' | 'transient',
  ) =>
    `${place} has ${listener}, but ${className} is ${scope}` +
    `${scope === 'transient' ? '' : ', itself or through something it injects'}; ` +
    `events come without a request: make the class a singleton, or put the listener on a class that is one`,

  rootTwice: (times: number, key: string | undefined) =>
    `QueueModule.forRoot(${quotedKey(key)}) or forRootAsync(${quotedKey(key)}) is imported ${count(times)}; import it once, in the root module`,
};

/** Warnings about valid code that is perhaps not intended. */
export const warnings = {
  lazySchedules: (className: string) =>
    `${className} was loaded lazily and has @Schedule for a queue that already has workers, so these schedules are not registered; ` +
    `import its module eagerly, or use queue.schedules.upsert()`,

  lazyListeners: (className: string) =>
    `${className} was loaded lazily, so its @OnQueueEvent listeners get no events; import its module eagerly, or subscribe with QueueEvents`,

  listenerTwice: (className: string, modules: readonly string[]) =>
    `${className} listens to events and is provided ${count(modules.length)} (${listed(modules)}), ` +
    `so each event is handled once per instance; provide it in one module and export it from there`,

  undecoratedSubclass: (className: string, base: string) =>
    `${className} extends the processor ${base} but has no @Processor itself, so it handles no jobs`,

  replacedProcessor: (className: string) =>
    `the processor ${className} is replaced by an object without @Processor, so its jobs are not handled; ` +
    `override the providers that it injects, or replace it by a class with @Processor and @Handle`,

  hooksOfScoped: (className: string, hooks: readonly string[]) =>
    `${className} is created for each job, itself or through something it injects, and Nest does not call ${listed(hooks)} of such a class; ` +
    `make it and its dependencies singletons, or put the hook on its module`,
};

interface Pattern {
  readonly jobName: string;
  readonly label: string;
}

function quotedKey(key: string | undefined): string {
  return key === undefined ? '' : `'${key}'`;
}

function count(times: number): string {
  return times === 2 ? 'twice' : `${times} times`;
}
