import { ApplicationConfig, type ExternalContextCreator, type ModulesContainer } from '@nestjs/core';
import type { Handler } from '../worker/handler.js';
import { createContextCreator } from './context-creator.js';
import { directHandler } from './direct.js';
import { enhancedHandler, isPlain, type HandlerTarget } from './enhanced.js';

/** Makes what a pool calls, once for a handler: the method itself, or the way to it through the enhancers. */
export class HandlerMaker {
  private readonly creator: ExternalContextCreator;

  constructor(modules: ModulesContainer) {
    this.creator = createContextCreator(modules, new ApplicationConfig());
  }

  make(target: HandlerTarget): Handler {
    return this.isPlain(target) ? directHandler(target.instance, target.method) : this.enhanced(target);
  }

  /** Whether nothing stands between the job and the method. */
  isPlain(target: HandlerTarget): boolean {
    return isPlain(this.creator, target);
  }

  /** Through the enhancers, whether there are any or not. */
  enhanced(target: HandlerTarget): Handler {
    return enhancedHandler(this.creator, target);
  }
}
