import { isDefinition, type AnyDefinition, type JobDefinition } from '../job/define-job.js';
import type { Job } from '../job/job.js';
import type { HandlerPolicy } from '../options/job-options.js';
import { handlerMarks, showHandle, refuseOtherThanMethod, type HandlerMark } from './metadata.js';

/** The allowed return types of a handler whose job has this result. */
type Returning<Result> = unknown extends Result
  ? unknown
  : Result | PromiseLike<Result> | { subscribe(observer: { next: (value: Result) => void }): unknown };

/** The type that the first parameter of a handler must accept: the job, or with `@JobData()` its data. */
type First<Data> = 0 extends 1 & Data
  ? any
  : [Data] extends [null | undefined | void]
    ? Job<Data, any>
    : Job<Data, any> & Data;

/**
 * A decorator for methods whose first parameter accepts `Job<Data>` or `Data`, and which return `Result` if the definition has
 * one; or a list of the data, of jobs that were added with `aggregate`. Other methods do not compile.
 */
export type HandleDecorator<Data, Result = unknown> = <
  Method extends
    | ((job: First<Data>, ...rest: any[]) => Returning<Result>)
    | ((job: First<Data[]>, ...rest: any[]) => Returning<Result>),
>(
  target: object,
  key: string,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/**
 * Makes a method of a `@Processor` class the handler of all jobs of the queue that have no handler of their own.
 *
 * @example
 * ;@Handle()
 * async anythingElse(job: Job) {}
 */
export function Handle(): HandleDecorator<any>;
/**
 * Makes a method of a `@Processor` class the handler of the jobs with this name. It may return a value, a promise or
 * an Observable; the attempt fails if it throws. Repeat the decorator for several names. Only instance methods with a
 * string name can be handlers; anything else throws a `BootstrapError` when the class is defined. Generators are refused at bootstrap.
 *
 * In the name, `*` matches any number of characters, including none: `'email.*'`, `'*.failed'`, and `'*'` for every name. A
 * handler with the exact name is chosen before patterns, and narrower patterns before wider ones: `'email.bulk.*'` before
 * `'email.*'` before `'*'`. Two patterns that overlap without one containing the other are reported at bootstrap.
 *
 * @param policy defaults for the jobs of this handler. They override those of the queue; options of the job override them. The
 * worker applies them, so the process that adds the job need not know them.
 * @example
 * ;@Handle('welcome')
 * async welcome(job: Job<{ to: string }>) {}
 *
 * @example
 * ;@Handle('charge', { attempts: 8, backoff: (attempt) => attempt * 10_000, timeout: '30s' })
 * async charge(job: Job<{ cents: number }>) {}
 */
export function Handle(jobName: string, policy?: HandlerPolicy): HandleDecorator<any>;
/**
 * Like `@Handle(name)`, with typed data. If the definition has a schema, the data is validated before the method is called.
 *
 * @example
 * export const welcome = defineJob('email', 'welcome', z.object({ to: z.email() }));
 *
 * ;@Processor(welcome)
 * export class EmailProcessor {
 *   ;@Handle(welcome)
 *   async welcome(job: JobOf<typeof welcome>) {
 *     console.log(job.data.to);
 *   }
 * }
 */
export function Handle<Input, Output, Result>(
  definition: JobDefinition<Input, Output, Result>,
  policy?: HandlerPolicy,
): HandleDecorator<Output, Result>;
export function Handle(...given: [] | [string | AnyDefinition, HandlerPolicy?]): HandleDecorator<any> {
  const mark = toMark(given);
  return (target, key, descriptor) => {
    refuseOtherThanMethod(showHandle(mark), target, key, descriptor);
    handlerMarks.add(descriptor.value as object, mark);
  };
}

// Counts the arguments: `@Handle(NAMES.welcom)` with a misspelt key passes undefined, and must not become a catch-all.
function toMark(given: readonly unknown[]): HandlerMark {
  if (given.length === 0) return { jobName: null };
  const [of, policy] = given;
  const options = policy === undefined ? {} : { policy };
  if (isDefinition(of)) return { jobName: of.name, definition: of, ...options };
  return { jobName: of === null ? undefined : of, ...options };
}
