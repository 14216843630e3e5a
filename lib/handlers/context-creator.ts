import { ExternalContextCreator, type ApplicationConfig, type ModulesContainer } from '@nestjs/core';
import type { Observable } from 'rxjs';
import { isThenable } from '../job/thenable.js';
import type { HandledJob } from '../worker/handler.js';
import { Interception } from './interception.js';
import type { QueueExecutionContext } from './queue-context.js';
import type { Method } from './target.js';

/** The arguments of a call: the parameters of a handler without decorators. */
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
}

type Container = Parameters<typeof ExternalContextCreator.fromContainer>[0];

/** What Nest's enhancer factories need of an application. */
export function containerOf(modules: ModulesContainer, config: ApplicationConfig): Container {
  return { getModules: () => modules, applicationConfig: config } as unknown as Container;
}

/**
 * Nest's own code for calling a method through its enhancers, with a configuration of ours and the differences between a handler
 * of jobs and one of requests.
 */
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
  parts.guardsConsumer = {
    tryActivate: (guards, args, instance, callback, type) =>
      guardsConsumer.tryActivate(guards, args, instance, methodOf(callback), type),
  };
  parts.interceptorsConsumer = {
    intercept: (interceptors, args, instance, callback, next, type) => {
      const [job, { handler }] = args;
      // Guards may have taken long.
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

function arePiped(pipes: readonly unknown[], params: readonly Param[]): boolean {
  return pipes.length > 0 || params.some((param) => (param.pipes?.length ?? 0) > 0);
}

/** Nest awaits each parameter even if it is not a promise, which is most of the cost of one. */
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

/** With decorated parameters too, an undecorated first one is the job and an undecorated second one the context. */
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
 * The function that Nest calls instead of the method: it looks the method up at each call, so that a test can replace it on the
 * instance. It carries the metadata of the method, and contexts return the method itself.
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
