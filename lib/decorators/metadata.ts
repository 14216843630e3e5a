import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { REQUEST } from '@nestjs/core';
import { BootstrapError } from '../errors.js';
import { show } from '../errors/show.js';
import { isDefinition, type AnyDefinition } from '../job/define-job.js';
import { checkQueueName } from '../job/job-id.js';
import { quoted } from '../job/text.js';
import type { ProcessorOptions } from '../options/worker-options.js';

/*
 * Marks and tokens are fixed strings, not symbols: two copies of this package in one node_modules tree still
 * understand each other's decorators.
 */
const PROCESSOR_MARK = 'godwit:processor';

/** Arguments of `@Processor`, unchecked: mistakes are reported at bootstrap, together with all others. */
export interface ProcessorMark {
  readonly queues: unknown;
  readonly options: ProcessorOptions;
}

/** Arguments of one `@Handle` or `@HandleBatch`. */
export interface HandlerMark {
  /** The job name, or null for the catch-all. Unchecked, like `ProcessorMark`. */
  readonly jobName: unknown;
  readonly definition?: AnyDefinition;
  /** Unchecked. */
  readonly policy?: unknown;
  /** The options of `@HandleBatch`, unchecked; absent for `@Handle`. */
  readonly batch?: unknown;
}

/** Argument of one `@Schedule`, unchecked. */
export interface ScheduleMark {
  readonly given: unknown;
}

/** Arguments of one `@OnQueueEvent` or `@OnJob`, unchecked. */
export interface ListenerMark {
  readonly given: readonly unknown[];
}

/** A `@Schedule` on something that cannot be a handler. */
interface MisplacedSchedule extends ScheduleMark {
  /** Empty if it is on the class. */
  readonly key: string;
  /** Where the decorator is: `static`, `a getter or setter`. */
  readonly misplaced: string;
}

/** Token of the engine. If a test overrides it, nothing in the application connects to Redis. */
export const QUEUE_ENGINE = 'godwit:engine';

/**
 * Token of the job, for request-scoped processors and their request-scoped dependencies: the same object that the handler receives.
 * It equals Nest's `REQUEST`, so a provider can serve both requests and jobs. In a durable provider it is the payload of the
 * `ContextIdStrategy`, because such an instance outlives the job.
 *
 * @example
 * ;@Injectable({ scope: Scope.REQUEST })
 * export class Tenant {
 *   constructor(@Inject(JOB_REF) readonly job: Job<{ tenant: string }>) {}
 * }
 */
export const JOB_REF: string = REQUEST;

/** Token of the options of `forRoot`, unchecked. */
export const ROOT_OPTIONS = 'godwit:root-options';

/** Token of the options of `forRoot` with a key. */
export function namedRootToken(key: unknown): string {
  return `${ROOT_OPTIONS}:${typeof key === 'string' ? key : show(key)}`;
}

/** The key in such a token; undefined for other tokens. */
export function keyOfNamedRoot(token: unknown): string | undefined {
  const start = `${ROOT_OPTIONS}:`;
  return typeof token === 'string' && token.startsWith(start) ? token.slice(start.length) : undefined;
}

/** Token of the options of `forRoot` after checking, with all defaults. */
export const SETTINGS = 'godwit:settings';

/** Token of the `Substitute` that replaces the store, if there is one (`godwit/testing`). */
export const SUBSTITUTE = 'godwit:substitute';

/** Token of the function that creates the `WorkerServices`, at each start of the workers. */
export const WORKER_SERVICES = 'godwit:worker-services';

/** Token of the function that returns the handle of a queue; it creates each handle once. */
export const QUEUE_HANDLES = 'godwit:queue-handles';

/**
 * Token of the handle of one queue, for `moduleRef.get`, `overrideProvider` and `inject` lists.
 *
 * @throws {InvalidQueueNameError}
 * @example
 * const emails = app.get<Queue>(getQueueToken('email'));
 */
export function getQueueToken(queue: string | AnyDefinition): string {
  return queueToken(checkQueueName(isDefinition(queue) ? queue.queue : queue));
}

/** Like `getQueueToken`, without checking the name. An invalid name is reported at startup, with all other mistakes. */
export function queueToken(name: unknown): string {
  return `godwit:queue:${typeof name === 'string' ? name : show(name)}`;
}

/**
 * Token of a dispatcher, for `moduleRef.get`, `overrideProvider` and `inject` lists. A dispatcher without a name has its `delayedKey` as
 * name.
 *
 * @example
 * const mails = app.get<Dispatcher>(getDispatcherToken('mails'));
 */
export function getDispatcherToken(name: string): string {
  return `godwit:dispatcher:${typeof name === 'string' ? name : show(name)}`;
}

export function markProcessor(target: object, mark: ProcessorMark): void {
  Reflect.defineMetadata(PROCESSOR_MARK, mark, target);
}

/** The mark of the class itself. It is not inherited: a subclass without the decorator is not a processor. */
export function readProcessorMark(target: object): ProcessorMark | undefined {
  return Reflect.getOwnMetadata(PROCESSOR_MARK, target) as ProcessorMark | undefined;
}

/** Marks of one kind on a function: a method may have several, and a class one for each of its members. */
function marksOf<Mark>(key: string) {
  const read = (target: unknown): readonly Mark[] =>
    typeof target === 'function' ? ((Reflect.getOwnMetadata(key, target) as Mark[] | undefined) ?? []) : [];
  return {
    read,
    // Decorators are applied from the bottom up. Adding each mark at the front keeps the order in which they are written.
    add: (target: object, mark: Mark) => Reflect.defineMetadata(key, [mark, ...read(target)], target),
  };
}

export const handlerMarks = marksOf<HandlerMark>('godwit:handler');
export const scheduleMarks = marksOf<ScheduleMark>('godwit:schedule');
export const listenerMarks = marksOf<ListenerMark>('godwit:listener');
/** The marks of `@OnJob`. */
export const jobListenerMarks = marksOf<ListenerMark>('godwit:job-listener');
/** Stored on the class, because a getter or a property has no function that could carry the mark. */
export const misplacedSchedules = marksOf<MisplacedSchedule>('godwit:misplaced-schedules');

/** Numbers of the parameter decorators. The data has the number of a request body, so pipes treat it like one. */
export const JOB_PARAMS = { data: 3, job: 100, id: 101, attempt: 102, signal: 103 } as const;

/** Arguments of a parameter decorator. */
export interface ParamMark {
  readonly data?: unknown;
  readonly pipes?: readonly unknown[];
  readonly schema?: unknown;
}

/** Uses the metadata key of Nest for the parameters of a method, so that decorators made with `createParamDecorator` work too. */
export function markParam(
  type: object,
  method: string | symbol,
  number: number,
  index: number,
  { data, pipes = [], schema }: ParamMark,
): void {
  const known = (Reflect.getMetadata(ROUTE_ARGS_METADATA, type, method) ?? {}) as Record<string, ParamIndex>;
  // A method that overrides another one inherits its decorated parameters, and may replace each of them.
  const others = Object.entries(known).filter(([, one]) => one.index !== index);
  const own = { index, data, pipes, ...(schema !== undefined && { schema }) };
  Reflect.defineMetadata(
    ROUTE_ARGS_METADATA,
    { ...Object.fromEntries(others), [`${number}:${index}`]: own },
    type,
    method,
  );
}

interface ParamIndex {
  readonly index: number;
}

/** Text of a `@Handle` or `@HandleBatch` in messages. */
export function showHandle(mark: HandlerMark): string {
  if (mark.jobName === null) return '@Handle()';
  return `${mark.batch === undefined ? '@Handle' : '@HandleBatch'}(${typeof mark.jobName === 'string' ? `'${mark.jobName}'` : show(mark.jobName)})`;
}

/** Name of a `@Schedule` in messages: its id, if it has one. */
export function showSchedule({ given }: ScheduleMark): string {
  try {
    const { id } = given as { id?: unknown };
    return typeof id === 'string' ? `@Schedule(${quoted(id)})` : '@Schedule()';
  } catch {
    // The argument may be null, or an object that throws when it is read.
    return '@Schedule()';
  }
}

/** Text of an `@OnQueueEvent` in messages: `@OnQueueEvent('dead')`, without its options. */
export function showListener(mark: ListenerMark): string {
  return showTypes('@OnQueueEvent', mark);
}

/** Text of an `@OnJob` in messages. */
export function showJobListener(mark: ListenerMark): string {
  return showTypes('@OnJob', mark);
}

function showTypes(decorator: string, { given: [types] }: ListenerMark): string {
  try {
    if (typeof types === 'string') return `${decorator}(${quoted(types)})`;
    return Array.isArray(types) ? `${decorator}([${types.map(showType).join(', ')}])` : `${decorator}()`;
  } catch {
    // The argument may be an object that throws when it is read.
    return `${decorator}()`;
  }
}

function showType(type: unknown): string {
  return typeof type === 'string' ? quoted(type) : show(type);
}

/** The target of a decorator that is not on an instance method with a plain name, as a phrase after "is"; else null. */
export function otherThanMethod(
  target: object,
  key: PropertyKey | undefined,
  descriptor: PropertyDescriptor | undefined,
): string | null {
  if (key === undefined) return 'a class';
  if (typeof target === 'function') return 'static';
  if (typeof key === 'symbol') return 'named by a symbol';
  if (descriptor === undefined) return 'a property';
  if (descriptor.get || descriptor.set) return 'a getter or setter';
  // As a parameter decorator the third argument is the index of the parameter.
  if (typeof descriptor !== 'object') return 'a parameter';
  return typeof descriptor.value === 'function' ? null : 'not a function';
}

/**
 * Refuses a decorator on anything else.
 *
 * @param mark the text of the decorator in messages.
 * @throws {BootstrapError}
 */
export function refuseOtherThanMethod(
  mark: string,
  target: object,
  key: PropertyKey | undefined,
  descriptor: PropertyDescriptor | undefined,
): void {
  const what = otherThanMethod(target, key, descriptor);
  if (what === null) return;
  const className = typeof target === 'function' ? target.name : target.constructor.name;
  const place = key === undefined ? className : `${className}.${String(key)}`;
  throw new BootstrapError([
    `${mark} is on ${place}, which is ${what}; put it on an instance method with a plain name`,
  ]);
}
