import {
  CUSTOM_ROUTE_ARGS_METADATA,
  EXCEPTION_FILTERS_METADATA,
  GUARDS_METADATA,
  INTERCEPTORS_METADATA,
  PIPES_METADATA,
  ROUTE_ARGS_METADATA,
} from '@nestjs/common/constants.js';
import type { ApplicationConfig, ExternalContextCreator, ModulesContainer } from '@nestjs/core';
import { JOB_PARAMS } from '../decorators/metadata.js';
import type { Job } from '../job/job.js';
import type { Handler } from '../worker/handler.js';
import {
  createContextCreator,
  methodOn,
  standInFor,
  type CallArgs,
  type HandlerTarget,
} from './context-creator.js';
import { FilterFinder, FilterStep } from './filters.js';
import { QUEUE_CONTEXT, QueueExecutionContext } from './queue-context.js';

const OPTIONS = { guards: true, interceptors: true, filters: false } as const;
const KINDS = [
  { key: GUARDS_METADATA, decorator: '@UseGuards', act: 'canActivate' },
  { key: INTERCEPTORS_METADATA, decorator: '@UseInterceptors', act: 'intercept' },
  { key: PIPES_METADATA, decorator: '@UsePipes', act: 'transform' },
  { key: EXCEPTION_FILTERS_METADATA, decorator: '@UseFilters', act: 'catch' },
] as const;

/**
 * Creates the function that a pool calls, once per handler: the method itself, or a call through its guards, interceptors, pipes
 * and filters.
 */
export class HandlerMaker {
  /** Mistakes in the enhancers of the handlers created so far, as sentences. */
  readonly faults: string[] = [];
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
    // Global pipes alone have no effect: they are only called for decorated parameters.
    const global = [config.getGlobalGuards(), config.getGlobalInterceptors(), config.getGlobalFilters()];
    this.isGlobal = global.some((kind) => kind.length > 0);
  }

  make(target: HandlerTarget): Handler {
    this.check(target);
    return this.isPlain(target) ? this.direct(target) : this.enhanced(target);
  }

  /** Adds mistakes in the enhancers to the faults. */
  check(target: HandlerTarget): void {
    for (const fault of enhancerFaults(this.modules, target))
      if (!this.faults.includes(fault)) this.faults.push(fault);
  }

  /** Whether the method has no enhancers. */
  isPlain(target: HandlerTarget): boolean {
    const { instance, method } = target;
    const places = [instance.constructor, methodOn(target)];
    if (this.isGlobal || KINDS.some(({ key }) => places.some((place) => Reflect.hasMetadata(key, place))))
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

  /** Calls only the method. It is looked up at each call, so that a test can replace it on the instance. */
  direct({ instance, method, label }: HandlerTarget): Handler {
    const takesContext = (instance[method] as (...args: unknown[]) => unknown).length > 1;
    return takesContext
      ? (job) => instance[method](job, new QueueExecutionContext(job, label))
      : (job) => instance[method](job);
  }

  /** Calls the method through its guards, interceptors, pipes, parameter decorators and filters. */
  enhanced(target: HandlerTarget): Handler {
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

type Class = abstract new (...args: any[]) => unknown;

const NUMBERS: readonly number[] = Object.values(JOB_PARAMS);

/** Mistakes in the enhancers of a handler that Nest would silently ignore. */
function enhancerFaults(modules: ModulesContainer, target: HandlerTarget): string[] {
  const { instance, method, label, moduleKey } = target;
  const type = instance.constructor as Class;
  const own = methodOn(target);
  const made = modules.get(moduleKey)?.injectables;
  const isMissing = (given: unknown, act: string): given is Class =>
    typeof given === 'function' && made?.has(given as never) !== true && !(act in given);
  const found: string[] = [];
  for (const { key, decorator, act } of KINDS) {
    for (const [place, on] of [[type.name, type] as const, [label, own] as const]) {
      const given = (Reflect.getMetadata(key, on) ?? []) as unknown[];
      for (const one of given.filter((enhancer) => isMissing(enhancer, act)))
        found.push(unmade(place, `${decorator}(${one.name})`, type.name));
    }
  }
  const params = (Reflect.getMetadata(ROUTE_ARGS_METADATA, type, method) ?? {}) as Record<string, Parameter>;
  for (const [key, { index, pipes = [] }] of Object.entries(params)) {
    const place = `parameter ${index + 1} of ${label}`;
    if (!key.includes(CUSTOM_ROUTE_ARGS_METADATA) && !NUMBERS.includes(Number.parseInt(key, 10))) {
      found.push(
        `${place} has a decorator for requests; take @JobData(), @JobRef(), @JobId(), @Attempt() or @Signal()`,
      );
    }
    for (const pipe of pipes.filter((one) => isMissing(one, 'transform')))
      found.push(unmade(place, `the pipe ${pipe.name}`, type.name));
  }
  return found;
}

interface Parameter {
  readonly index: number;
  readonly pipes?: readonly unknown[];
}

function unmade(place: string, what: string, className: string): string {
  return (
    `${place} has ${what}, which Nest would ignore, because it creates enhancers only for classes that are listed as providers; ` +
    `list ${className} in "providers", or give an instance instead of the class`
  );
}
