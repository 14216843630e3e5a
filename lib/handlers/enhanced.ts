import {
  EXCEPTION_FILTERS_METADATA,
  GUARDS_METADATA,
  INTERCEPTORS_METADATA,
  PIPES_METADATA,
  ROUTE_ARGS_METADATA,
} from '@nestjs/common/constants.js';
import type { ApplicationConfig, ExternalContextCreator, ModulesContainer } from '@nestjs/core';
import type { Handler } from '../worker/handler.js';
import { createContextCreator, standInFor, type CallArgs } from './context-creator.js';
import { enhancerFaults } from './faults.js';
import { FilterFinder, FilterStep } from './filters.js';
import { QUEUE_CONTEXT, QueueExecutionContext } from './queue-context.js';
import { methodOn, type HandlerTarget } from './target.js';
import { JOB_PARAMS } from '../decorators/metadata.js';
import type { Job } from '../job/job.js';

const OPTIONS = { guards: true, interceptors: true, filters: false } as const;
const KINDS = [GUARDS_METADATA, INTERCEPTORS_METADATA, PIPES_METADATA, EXCEPTION_FILTERS_METADATA];

/** Calls a method through the enhancers on it and on its class. */
export class Enhancers {
  private readonly creator: ExternalContextCreator;
  private readonly filters: FilterFinder;
  private readonly isGlobal: boolean;

  /** @param config has the global enhancers that apply. */
  constructor(
    private readonly modules: ModulesContainer,
    config: ApplicationConfig,
  ) {
    this.creator = createContextCreator(modules, config);
    this.filters = new FilterFinder(modules, config);
    // Without decorated parameters there is nothing for pipes to do.
    const global = [config.getGlobalGuards(), config.getGlobalInterceptors(), config.getGlobalFilters()];
    this.isGlobal = global.some((kind) => kind.length > 0);
  }

  /** Whether the method has no enhancers. */
  isPlain(target: HandlerTarget): boolean {
    const { instance, method } = target;
    const places = [instance.constructor, methodOn(target)];
    if (this.isGlobal || KINDS.some((kind) => places.some((place) => Reflect.hasMetadata(kind, place))))
      return false;
    const { argsLength } = this.creator.getMetadata(
      instance,
      method,
      ROUTE_ARGS_METADATA,
      jobParams,
      QUEUE_CONTEXT,
    );
    return argsLength === 0;
  }

  /** Mistakes in its enhancers, as sentences. */
  faultsOf(target: HandlerTarget): string[] {
    return enhancerFaults(this.modules, target);
  }

  /** A handler that calls the method through its guards, interceptors, pipes, parameter decorators and filters. */
  handler(target: HandlerTarget): Handler {
    const { instance, method, label, moduleKey, contextId, inquirerId } = target;
    const own = methodOn(target);
    const standIn = standInFor(own, method);
    const call = this.creator.create(
      instance,
      standIn,
      method,
      ROUTE_ARGS_METADATA,
      jobParams,
      contextId,
      inquirerId,
      OPTIONS,
      QUEUE_CONTEXT,
    );
    const filters = this.filters.find(instance, standIn, moduleKey, contextId, inquirerId);
    const step =
      filters.length === 0
        ? undefined
        : new FilterStep(this.filters, filters, instance.constructor as never, own);
    return (job) => {
      job.stage = 'before';
      const args: CallArgs = [job, new QueueExecutionContext(job, label)];
      const called = call(...args);
      return step ? step.around(called, args) : called;
    };
  }
}

type ParamsFactory = NonNullable<Parameters<ExternalContextCreator['create']>[4]>;

/** The values of the library's parameter decorators. */
export const jobParams: ParamsFactory = {
  exchangeKeyForValue(type, property, [job]: [Job<any>]) {
    switch (type) {
      case JOB_PARAMS.data:
        return typeof property === 'string' ? job.data?.[property] : job.data;
      case JOB_PARAMS.job:
        return job;
      case JOB_PARAMS.id:
        return job.id;
      case JOB_PARAMS.attempt:
        return job.attempt;
      case JOB_PARAMS.signal:
        return job.signal;
      default:
        return undefined;
    }
  },
};
