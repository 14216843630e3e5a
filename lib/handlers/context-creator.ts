import {
  ExternalContextCreator,
  type ApplicationConfig,
  type ModulesContainer,
  type ContextId,
} from '@nestjs/core';
import { Observable, isObservable, type Subscriber } from 'rxjs';
import { isThenable } from '../job/thenable.js';
import type { HandledJob } from '../worker/handler.js';
import type { QueueExecutionContext } from './queue-context.js';
import { HandlerNotCalledError } from '../errors.js';

/** A method of the application. */
export type Method = (...args: any[]) => unknown;

/** A method that handles jobs, on one instance of its class. */
export interface HandlerTarget {
  readonly instance: Record<string, any>;
  readonly method: string;
  /** `Class.method`, for messages. */
  readonly label: string;
  /** Key of the module that provides the class. The module has its enhancers. */
  readonly moduleKey: string;
  /** If the instance was created for one context: that context, and the id of its provider. */
  readonly contextId?: ContextId;
  readonly inquirerId?: string;
}

/** The method of the class, which has the decorators, even if the instance overrides it with a property. */
export function methodOn({ instance, method }: HandlerTarget): Method {
  return (Object.getPrototypeOf(instance) as Record<string, any>)[method];
}

/** The arguments of a call. They are the parameters of a handler without decorators. */
export type CallArgs = readonly [job: HandledJob, context: QueueExecutionContext];

type Next = () => Promise<unknown>;
/** Puts the values of decorated parameters into the arguments. */
type Fill = (args: unknown[], ...given: unknown[]) => unknown;

/** A decorated parameter, as Nest describes it. */
interface Param {
  readonly index: number;
  readonly pipes?: readonly unknown[];
  readonly extractValue: (...given: unknown[]) => unknown;
}

/** Internal parts of the creator, the same in Nest 11 and 12. */
interface Parts {
  guardsConsumer: {
    tryActivate(guards: unknown, args: CallArgs, instance: object, callback: Method, type: string): unknown;
  };
  interceptorsConsumer: {
    intercept(
      interceptors: readonly unknown[],
      args: CallArgs,
      instance: object,
      callback: Method,
      next: Next,
      type: string,
    ): Promise<unknown>;
  };
  createPipesFn(pipes: unknown[], params: readonly Param[]): Fill | null;
  transformToResult(result: unknown): unknown;
  handlerMetadataStorage: {
    get(instance: object, method: string): unknown;
    set(instance: object, method: string, metadata: unknown): void;
  };
}

type Container = Parameters<typeof ExternalContextCreator.fromContainer>[0];

/** The part of an application that Nest's enhancer factories need. */
export function containerOf(modules: ModulesContainer, config: ApplicationConfig): Container {
  return { getModules: () => modules, applicationConfig: config } as unknown as Container;
}

/** Nest's own code for calling a method through its enhancers, changed where job handlers differ from request handlers. */
export function createContextCreator(
  modules: ModulesContainer,
  config: ApplicationConfig,
): ExternalContextCreator {
  const creator = ExternalContextCreator.fromContainer(containerOf(modules, config));
  const parts = creator as unknown as Parts;
  const { guardsConsumer, interceptorsConsumer } = parts;
  const createPipesFn = parts.createPipesFn.bind(creator);
  // The values of an Observable are progress, but Nest would only wait for the last one.
  parts.transformToResult = (result) => result;
  parts.handlerMetadataStorage = new MetadataByClass();
  parts.guardsConsumer = {
    tryActivate: (guards, args, instance, callback, type) =>
      guardsConsumer.tryActivate(guards, args, instance, methodOf(callback), type),
  };
  parts.interceptorsConsumer = {
    intercept: (interceptors, args, instance, callback, next, type) => {
      const [job, { handler }] = args;
      // Guards may have taken long, so the run may have been aborted.
      if (job.aborted) throw job.aborted;
      if (interceptors.length === 0) {
        job.stage = undefined;
        return next();
      }
      const interception = new Interception(job, handler, next);
      const call = () => interception.call();
      const method = methodOf(callback);
      return interceptorsConsumer
        .intercept(interceptors, args, instance, method, call, type)
        .then((values) => interception.watch(values as Observable<unknown>));
    },
  };
  parts.createPipesFn = (pipes, params) => {
    const fill = arePiped(pipes, params) ? createPipesFn(pipes, params) : fillWithoutPipes(params);
    return withPlainParameters(fill, params);
  };
  return creator;
}

/** Nest 11 stores the parameters of a method by the name of its class, but two modules may have classes with the same name. */
class MetadataByClass {
  private readonly classes = new WeakMap<object, Map<string, unknown>>();

  get(instance: object, method: string): unknown {
    return this.classes.get(Object.getPrototypeOf(instance))?.get(method);
  }

  set(instance: object, method: string, metadata: unknown): void {
    const prototype = Object.getPrototypeOf(instance);
    const methods = this.classes.get(prototype) ?? new Map<string, unknown>();
    this.classes.set(prototype, methods.set(method, metadata));
  }
}

function arePiped(pipes: readonly unknown[], params: readonly Param[]): boolean {
  return pipes.length > 0 || params.some((param) => (param.pipes?.length ?? 0) > 0);
}

/** Nest awaits each parameter even if it is not a promise, which is most of the cost of a decorated parameter. */
function fillWithoutPipes(params: readonly Param[]): Fill | null {
  if (params.length === 0) return null;
  return (args, ...given) => {
    let waits: Promise<void>[] | undefined;
    for (const { index, extractValue } of params) {
      const value = extractValue(...given);
      args[index] = value;
      // A decorator of the application may return a promise.
      if (isThenable(value))
        (waits ??= []).push(Promise.resolve(value).then((settled) => void (args[index] = settled)));
    }
    return waits && Promise.all(waits);
  };
}

/** If only some parameters have decorators, an undecorated first parameter gets the job, an undecorated second one the context. */
function withPlainParameters(fill: Fill | null, params: readonly Param[]): Fill | null {
  const plain = [0, 1].filter((index) => params.every((one) => one.index !== index));
  if (fill === null || plain.length === 0) return fill;
  return (args, ...given) => {
    for (const index of plain) args[index] = given[index];
    return fill(args, ...given);
  };
}

const standIns = new WeakMap<Method, Method>();

/**
 * The function that Nest calls instead of the method. It looks the method up at each call, so that a test can replace it on the
 * instance. It has the metadata of the method, and contexts return the method itself.
 */
export function standInFor(method: Method, name: string): Method {
  let standIn = standIns.get(method);
  if (standIn === undefined) {
    standIn = function (this: Record<string, Method>, ...args: unknown[]) {
      return this[name]!(...args);
    };
    Object.setPrototypeOf(standIn, method);
    standIns.set(method, standIn);
  }
  return standIn;
}

function methodOf(standIn: Method): Method {
  return Object.getPrototypeOf(standIn) as Method;
}

/** One call of a method inside its interceptors. They may delay it, repeat it, or return a value without calling it. */
class Interception {
  private subscriber: Subscriber<unknown> | undefined;

  constructor(
    private readonly job: HandledJob,
    /** `Class.method`, for messages. */
    private readonly handler: string,
    private readonly method: () => Promise<unknown>,
  ) {}

  /** The innermost step. An interceptor that retries calls it again. */
  call(): Promise<unknown> {
    const { job } = this;
    if (job.aborted) return this.end(job.aborted);
    job.stage = 'running';
    return this.method().then(this.returned, this.failed);
  }

  private readonly returned = (value: unknown): unknown => {
    const { job } = this;
    job.stage = 'after';
    return job.aborted && isObservable(value) ? this.end(job.aborted) : value;
  };

  private readonly failed = (error: unknown): never => {
    this.job.stage = 'after';
    throw error;
  };

  /** @param values the Observable of the outermost interceptor. */
  watch(values: Observable<unknown>): Observable<unknown> {
    return new Observable((subscriber) => {
      this.subscriber = subscriber;
      let hasValue = false;
      return values.subscribe({
        next: (value) => {
          hasValue = true;
          subscriber.next(value);
        },
        error: (error) => {
          const isSilent = !hasValue && this.job.stage === 'before' && isNoStream(error);
          subscriber.error(isSilent ? this.returnedNothing(error) : error);
        },
        complete: () => {
          // Otherwise the job would be completed although its handler was never called.
          if (!hasValue && this.job.stage === 'before')
            subscriber.error(new HandlerNotCalledError(this.handler));
          else subscriber.complete();
        },
      });
    });
  }

  private returnedNothing(cause: unknown): HandlerNotCalledError {
    return new HandlerNotCalledError(this.handler, 'returned no Observable', { cause });
  }

  /** Ends the run without the interceptors, because one that retries forever would also retry on this error. */
  private end(error: Error): Promise<never> {
    this.subscriber?.error(error);
    return new Promise(() => {});
  }
}

/** The error of RxJS for an interceptor that returned nothing. It names no class. */
function isNoStream(error: unknown): boolean {
  return error instanceof TypeError && error.message.includes('where a stream was expected');
}
