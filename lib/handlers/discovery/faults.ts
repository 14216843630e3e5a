import { listed, namedQueues } from '../../job/text.js';

/**
 * Every message of the discovery about a mistake: each names class and method, and says what to do. All that apply are reported in one
 * `BootstrapError`.
 */
export const faults = {
  controller: (className: string) =>
    `${className} is a controller with @Processor; make it a provider, controllers only answer requests`,

  transient: (className: string) =>
    `${className} is transient; a processor is one instance for all its jobs, or with Scope.REQUEST one for each: ` +
    `change the scope`,

  providedTwice: (className: string, modules: readonly string[]) =>
    `the processor ${className} is provided ${count(modules.length)} (${listed(modules)}), ` +
    `which makes as many instances of it; provide it in one module and export it from there`,

  withoutProcessor: (place: string, handle: string, className: string) =>
    `${place} is marked ${handle}, but ${className} has no @Processor; add @Processor('queue') to the class`,

  noHandlers: (className: string, queues: readonly string[]) =>
    `${className} is a processor of ${namedQueues(queues)} and has no handler; put @Handle('name') on one of its methods`,

  noHandlerFor: (queue: string, classNames: readonly string[]) =>
    `nothing handles the jobs of queue '${queue}', which ${listed(classNames)} ${classNames.length === 1 ? 'works' : 'work'} on; ` +
    `put @Handle('name') on a method, or take the queue out`,

  noQueues: (className: string, received: string) =>
    `@Processor of ${className}: it names no queue, got ${received}; ` +
    `give a name, a list of names in strict order, or names with weights: { critical: 6, default: 3 }`,

  queueTwice: (className: string, queue: string) =>
    `@Processor of ${className}: queue '${queue}' is in the list twice; name it once`,

  weight: (className: string, queue: string, received: string) =>
    `@Processor of ${className}: the weight of queue '${queue}' must be an integer from 1 to 1000, got ${received}`,

  severalPools: (queue: string, asked: readonly { className: string; group: string }[]) =>
    `queue '${queue}' belongs to one pool, and is asked for by several: ` +
    `${listed(asked.map((one) => `${one.className} (${one.group})`))}; give them the same queues, or the queue to one of them`,

  argument: (place: string, why: string) => `${place}: ${why}`,

  hiddenOverride: (place: string, base: string, handle: string) =>
    `${place} overrides ${base}, which is marked ${handle}, and so hides it; ` +
    `mark the override too, or give it another name`,

  otherQueue: (
    place: string,
    jobName: string,
    definedFor: string,
    className: string,
    queues: readonly string[],
  ) =>
    `${place} handles '${jobName}', which is defined for queue '${definedFor}', ` +
    `but ${className} works on ${namedQueues(queues)}; move it to a processor of '${definedFor}'`,

  misplacedSchedule: (schedule: string, place: string, what: string) =>
    `${schedule} stands on ${place}, which is ${what}; ` +
    `put it beside @Handle on an instance method with a plain name`,

  scheduleWithoutHandler: (schedule: string, place: string) =>
    `${schedule} stands on ${place} without @Handle; add @Handle('name'): it runs the jobs that the schedule makes`,

  scheduleName: (schedule: string, place: string, why: string) =>
    `${schedule} of ${place} must say which jobs it makes, as its method ${why}; give it a name`,

  scheduleNameType: (schedule: string, place: string, received: string) =>
    `${schedule} of ${place}.name must be the name of a job, got ${received}`,

  scheduleForOthers: (schedule: string, place: string, jobName: string) =>
    `${schedule} of ${place} makes jobs '${jobName}', which ${place} does not handle; ` +
    `name one it handles, or put the schedule on the method that does`,

  scheduleQueue: (schedule: string, place: string, queues: readonly string[]) =>
    `${schedule} of ${place} must say in which queue, as its processor works on ${listed(queues)}; give it a queue`,

  scheduleOtherQueue: (schedule: string, place: string, queue: string, queues: readonly string[]) =>
    `${schedule} of ${place} is for queue ${queue}, but its processor works on ${listed(queues)}`,

  duplicateSchedule: (queue: string, id: string, places: readonly string[]) =>
    `schedule '${id}' of queue '${queue}' is declared ${count(places.length)}: ${listed(places)}; give each an id of its own`,

  duplicateHandler: (queue: string, jobName: string, places: readonly string[]) =>
    `job '${jobName}' of queue '${queue}' has ${places.length} handlers: ${listed(places)}; keep one`,

  duplicateCatchAll: (queue: string, places: readonly string[]) =>
    `queue '${queue}' has ${places.length} handlers for every other job: ${listed(places)}; ` +
    `keep one @Handle() without a name`,

  concurrencyConflict: (
    queues: readonly string[],
    asked: readonly { className: string; concurrency: number }[],
  ) =>
    `the processors of ${namedQueues(queues)} share one pool and ask for different concurrency: ` +
    `${listed(asked.map((one) => `${one.className} for ${one.concurrency}`))}; give it once`,

  listenerScope: (
    place: string,
    listener: string,
    className: string,
    scope: 'request-scoped' | 'transient',
  ) =>
    `${place} is marked ${listener}, but ${className} is ${scope}` +
    `${scope === 'transient' ? '' : ', itself or through something it injects'}; ` +
    `an event comes with no request and is for one instance: make the class a singleton, or put the listener on one that is`,

  rootTwice: (times: number, key: string | undefined) =>
    `QueueModule.forRoot(${quotedKey(key)}) or forRootAsync(${quotedKey(key)}) is imported ${count(times)}; import it once, in the root module`,
};

/** Valid, but perhaps not intended. */
export const warnings = {
  lazySchedules: (className: string) =>
    `${className} was loaded lazily and has @Schedule for a queue that has workers already: these schedules are not registered; ` +
    `import its module eagerly, or use queue.schedules.upsert()`,

  lazyListeners: (className: string) =>
    `${className} was loaded lazily and listens to events: it hears nothing; import its module eagerly, or subscribe with QueueEvents`,

  listenerTwice: (className: string, modules: readonly string[]) =>
    `${className} listens to events and is provided ${count(modules.length)} (${listed(modules)}), ` +
    `so that as many instances of it hear each event; provide it in one module and export it from there`,

  undecoratedSubclass: (className: string, base: string) =>
    `${className} extends the processor ${base} without a @Processor of its own, so it is none and handles nothing`,

  hooksOfScoped: (className: string, hooks: readonly string[]) =>
    `${className} is made for each job, itself or through something it injects, and Nest does not call ${listed(hooks)} of such a class; ` +
    `make it and what it injects singletons, or put the hook on its module`,
};

function quotedKey(key: string | undefined): string {
  return key === undefined ? '' : `'${key}'`;
}

function count(times: number): string {
  return times === 2 ? 'twice' : `${times} times`;
}
