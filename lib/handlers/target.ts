import type { ContextId } from '@nestjs/core';

/** A method of the application. */
export type Method = (...args: any[]) => unknown;

/** A method that handles jobs, on one instance of its class. */
export interface HandlerTarget {
  readonly instance: Record<string, any>;
  readonly method: string;
  /** `Class.method`, for messages. */
  readonly label: string;
  /** Key of the module that provides it, which has its enhancers. */
  readonly moduleKey: string;
  /** If the instance was created for one context: that context, and the id of its provider. */
  readonly contextId?: ContextId;
  readonly inquirerId?: string;
}

/** The method of the class, which has the decorators, even if the instance has another one. */
export function methodOn({ instance, method }: HandlerTarget): Method {
  return (Object.getPrototypeOf(instance) as Record<string, any>)[method];
}
