import type { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import type { Handler } from '../worker/handler.js';
import { Enhancers } from './enhanced.js';
import type { HandlerTarget } from './target.js';
import { QueueExecutionContext } from './queue-context.js';

/** Makes what a pool calls, once for a handler: the method itself, or the way to it through the enhancers. */
export class HandlerMaker {
  /** What is wrong with what stands on the handlers made so far, as sentences. */
  readonly faults: string[] = [];
  private readonly enhancers: Enhancers;

  constructor(modules: ModulesContainer, config: ApplicationConfig) {
    this.enhancers = new Enhancers(modules, config);
  }

  make(target: HandlerTarget): Handler {
    this.check(target);
    return this.isPlain(target) ? this.direct(target) : this.enhanced(target);
  }

  /** Adds what is wrong to the faults. */
  check(target: HandlerTarget): void {
    for (const fault of this.enhancers.faultsOf(target))
      if (!this.faults.includes(fault)) this.faults.push(fault);
  }

  /** Calls the method and nothing else. */
  direct({ instance, method, label }: HandlerTarget): Handler {
    // What a test puts in its place before the start counts too: it is what will be called.
    const takesContext = (instance[method] as (...args: unknown[]) => unknown).length > 1;
    return takesContext ? directHandlerWithContext(instance, method, label) : directHandler(instance, method);
  }

  /** Whether nothing stands between the job and the method. */
  isPlain(target: HandlerTarget): boolean {
    return this.enhancers.isPlain(target);
  }

  /** Through the enhancers, whether there are any or not. */
  enhanced(target: HandlerTarget): Handler {
    return this.enhancers.handler(target);
  }
}

/** Calls the method and nothing else. It is looked up at each call, so that a test may replace it on the instance. */
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
