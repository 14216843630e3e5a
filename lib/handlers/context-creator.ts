import { ApplicationConfig, ExternalContextCreator, type ModulesContainer } from '@nestjs/core';
import type { HandledJob } from '../worker/handler.js';

type Method = (...args: any[]) => unknown;
type Next = () => Promise<unknown>;

/** Inner parts of the creator, the same in Nest 11 and 12. */
interface Parts {
  guardsConsumer: {
    tryActivate(guards: unknown, args: unknown[], instance: object, callback: Method, type: string): unknown;
  };
  interceptorsConsumer: {
    intercept(
      interceptors: readonly unknown[],
      args: unknown[],
      instance: object,
      callback: Method,
      next: Next,
      type: string,
    ): unknown;
  };
  transformToResult(result: unknown): unknown;
}

/**
 * Nest's own machinery for calling a method through its enhancers, with a configuration of ours: the global ones of the
 * application were written for requests, so only those that were asked for take part.
 */
export function createContextCreator(
  modules: ModulesContainer,
  config: ApplicationConfig,
): ExternalContextCreator {
  type Container = Parameters<typeof ExternalContextCreator.fromContainer>[0];
  const container = { getModules: () => modules, applicationConfig: config } as unknown as Container;
  const creator = ExternalContextCreator.fromContainer(container);
  const parts = creator as unknown as Parts;
  const { guardsConsumer, interceptorsConsumer } = parts;
  // The values of an Observable are progress, and Nest would wait for the last one only.
  parts.transformToResult = (result) => result;
  parts.guardsConsumer = {
    tryActivate: (guards, args, instance, callback, type) =>
      guardsConsumer.tryActivate(guards, args, instance, methodOf(callback), type),
  };
  parts.interceptorsConsumer = {
    intercept: (interceptors, args, instance, callback, next, type) => {
      const job = args[0] as HandledJob;
      if (job.aborted) throw job.aborted;
      if (interceptors.length === 0) {
        job.stage = undefined;
        return next();
      }
      return interceptorsConsumer.intercept(
        interceptors,
        args,
        instance,
        methodOf(callback),
        () => callMethod(job, next),
        type,
      );
    },
  };
  return creator;
}

/** An interceptor that tries again calls the method again; a run that should end is not begun anew. */
async function callMethod(job: HandledJob, next: Next): Promise<unknown> {
  if (job.aborted) throw job.aborted;
  job.stage = 'running';
  try {
    return await next();
  } finally {
    job.stage = 'after';
  }
}

const standIns = new WeakMap<Method, Method>();

/**
 * What Nest calls in place of the method: it looks the method up at each call, so that a test may replace it on the instance.
 * The metadata of the method are found on it, and contexts answer the method itself.
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
