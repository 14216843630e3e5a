import type { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import type { Handler } from '../worker/handler.js';
import { Enhancers } from './enhanced.js';
import type { HandlerTarget } from './target.js';
import { QueueExecutionContext } from './queue-context.js';

/** Creates the function that a pool calls, once per handler: the method itself, or a call through the enhancers. */
export class HandlerMaker {
  /** Mistakes in the enhancers of the handlers created so far, as sentences. */
  readonly faults: string[] = [];
  private readonly enhancers: Enhancers;

  constructor(modules: ModulesContainer, config: ApplicationConfig) {
    this.enhancers = new Enhancers(modules, config);
  }

  make(target: HandlerTarget): Handler {
    this.check(target);
    return this.isPlain(target) ? this.direct(target) : this.enhanced(target);
  }

  /** Adds mistakes to the faults. */
  check(target: HandlerTarget): void {
    for (const fault of this.enhancers.faultsOf(target))
      if (!this.faults.includes(fault)) this.faults.push(fault);
  }

  /** Calls only the method. */
  direct({ instance, method, label }: HandlerTarget): Handler {
    // A replacement by a test before the start counts too, because it is what will be called.
    const takesContext = (instance[method] as (...args: unknown[]) => unknown).length > 1;
    return takesContext ? directHandlerWithContext(instance, method, label) : directHandler(instance, method);
  }

  /** Whether the method has no enhancers. */
  isPlain(target: HandlerTarget): boolean {
    return this.enhancers.isPlain(target);
  }

  /** Calls through the enhancers, even if there are none. */
  enhanced(target: HandlerTarget): Handler {
    return this.enhancers.handler(target);
  }
}

/** Calls only the method. It is looked up at each call, so that a test can replace it on the instance. */
export function directHandler(instance: Record<string, any>, method: string): Handler {
  return (job) => instance[method](job);
}

/** The same for a method that takes the context too. */
export function directHandlerWithContext(
  instance: Record<string, any>,
  method: string,
  label: string,
): Handler {
  return (job) => instance[method](job, new QueueExecutionContext(job, label));
}
