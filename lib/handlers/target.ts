import type { ContextId } from '@nestjs/core';

/** A method of an author. */
export type Method = (...args: any[]) => unknown;

/** A method that handles jobs, on one instance of its class. */
export interface HandlerTarget {
  readonly instance: Record<string, any>;
  readonly method: string;
  /** `Class.method`, for messages. */
  readonly label: string;
  /** Key of the module that provides it: where its enhancers are. */
  readonly moduleKey: string;
  /** Where the instance was made for one context: that context, and the id of the provider it was made from. */
  readonly contextId?: ContextId;
  readonly inquirerId?: string;
}

/** That of the class: decorators stand on it, whatever the instance has in its place. */
export function methodOn({ instance, method }: HandlerTarget): Method {
  return (Object.getPrototypeOf(instance) as Record<string, any>)[method];
}
