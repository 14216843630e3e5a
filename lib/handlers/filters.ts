import { types } from 'node:util';
import { type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { Log } from '../contract/log.js';
import { EXCEPTION_FILTERS_METADATA } from '@nestjs/common/constants.js';
import type { ApplicationConfig, ContextId, ModulesContainer } from '@nestjs/core';
import { ExternalExceptionFilterContext } from '@nestjs/core/exceptions/external-exception-filter-context.js';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { catchError, from, isObservable, lastValueFrom } from 'rxjs';
import { obeys } from '../worker/handler.js';
import { containerOf, type CallArgs, type Method } from './context-creator.js';
import { QUEUE_CONTEXT } from './queue-context.js';

type FilterOrClass = Parameters<ExternalExceptionFilterContext['getFilterInstance']>[0];
type ErrorClass = abstract new (...args: any[]) => object;

interface Filter {
  /** Name of its class, for messages. */
  readonly name: string;
  /** The types of `@Catch`. Empty for all errors. */
  readonly types: readonly ErrorClass[];
  readonly ask: (error: unknown, host: ArgumentsHost) => unknown;
}

/** Finds the filters of a method, as Nest does. */
export class FilterFinder extends ExternalExceptionFilterContext {
  private readonly logger = new Log('QueueModule');
  private readonly complained = new Set<string>();

  constructor(modules: ModulesContainer, config: ApplicationConfig) {
    super(containerOf(modules, config), config);
  }

  /**
   * The filters in the order in which they are tried: those of the method, of its class, global ones. Within each kind the last
   * comes first.
   */
  find(
    instance: object,
    standIn: Method,
    moduleKey: string,
    contextId?: ContextId,
    inquirerId?: string,
  ): readonly Filter[] {
    this.moduleContext = moduleKey;
    const found = this.createContext(
      instance,
      standIn,
      EXCEPTION_FILTERS_METADATA,
      contextId,
      inquirerId,
    ) as unknown as Filter[];
    return found.toReversed();
  }

  /** Logs a warning only once, even if many jobs fail. */
  warnOnce(filter: string, handler: string): void {
    const key = `${filter} of ${handler}`;
    if (this.complained.has(key)) return;
    this.complained.add(key);
    this.logger.warn(
      `${filter}, a filter of ${handler}, returned a value, which is ignored: the job still fails with the original error; ` +
        `to replace it, throw or return another error`,
    );
  }

  /** Adds the name of the filter, for messages. */
  override createConcreteContext<T extends any[], R extends any[]>(
    metadata: T | undefined,
    contextId?: ContextId,
    inquirerId?: string,
  ): R {
    const found = ((metadata ?? []) as FilterOrClass[])
      .map((given) => this.getFilterInstance(given, contextId, inquirerId))
      .filter((filter) => typeof filter?.catch === 'function')
      .map((filter) => this.describe(filter!));
    return found as R;
  }

  private describe(filter: ExceptionFilter): Filter {
    return {
      name: filter.constructor.name,
      types: this.reflectCatchExceptions(filter) as readonly unknown[] as readonly ErrorClass[],
      ask: filter.catch.bind(filter),
    };
  }
}

/**
 * Lets filters replace the error of a failed attempt. They cannot turn it into a success, because the job was not done. Nest's
 * own code would use the return value of a filter as the result.
 */
export class FilterStep {
  constructor(
    private readonly finder: FilterFinder,
    private readonly filters: readonly Filter[],
    private readonly type: Parameters<typeof newHost>[1],
    private readonly method: Method,
  ) {}

  /** @param called the result of the call through the other enhancers. */
  around(called: Promise<unknown>, args: CallArgs): Promise<unknown> {
    return called.then(
      (result) =>
        isObservable(result)
          ? result.pipe(catchError((error: unknown) => from(this.replace(error, args))))
          : result,
      (error: unknown) => this.replace(error, args),
    );
  }

  /** Rejects with the error of the filter that catches it, or with the original one. */
  private async replace(error: unknown, args: CallArgs): Promise<never> {
    const [job, { handler }] = args;
    const found = obeys(job, error)
      ? undefined
      : this.filters.find(({ types }) => types.length === 0 || types.some((type) => error instanceof type));
    if (found === undefined) throw error;
    let returned = await found.ask(error, newHost(args, this.type, this.method));
    if (isObservable(returned)) returned = await lastValueFrom(returned, { defaultValue: undefined });
    if (types.isNativeError(returned) || returned instanceof Error) throw returned;
    // A filter that returns nothing has not replaced the error.
    if (returned !== undefined) this.finder.warnOnce(found.name, handler);
    throw error;
  }
}

function newHost(
  args: CallArgs,
  type: abstract new (...args: any[]) => object,
  method: Method,
): ArgumentsHost {
  const host = new ExecutionContextHost([...args], type as never, method);
  host.setType(QUEUE_CONTEXT);
  return host;
}
