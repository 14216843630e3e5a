import {
  CUSTOM_ROUTE_ARGS_METADATA,
  EXCEPTION_FILTERS_METADATA,
  GUARDS_METADATA,
  INTERCEPTORS_METADATA,
  PIPES_METADATA,
  ROUTE_ARGS_METADATA,
} from '@nestjs/common/constants.js';
import type { ModulesContainer } from '@nestjs/core';
import { JOB_PARAMS } from '../decorators/metadata.js';
import { methodOn, type HandlerTarget } from './target.js';

type Class = abstract new (...args: any[]) => unknown;

const KINDS = [
  { key: GUARDS_METADATA, decorator: '@UseGuards', act: 'canActivate' },
  { key: INTERCEPTORS_METADATA, decorator: '@UseInterceptors', act: 'intercept' },
  { key: PIPES_METADATA, decorator: '@UsePipes', act: 'transform' },
  { key: EXCEPTION_FILTERS_METADATA, decorator: '@UseFilters', act: 'catch' },
] as const;

const NUMBERS: readonly number[] = Object.values(JOB_PARAMS);

/** Mistakes in the enhancers of a handler that Nest would silently ignore. */
export function enhancerFaults(modules: ModulesContainer, target: HandlerTarget): string[] {
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
        found.push(unmade(place, `${decorator}(${(one as Class).name})`, type.name));
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
      found.push(unmade(place, `the pipe ${(pipe as Class).name}`, type.name));
  }
  return found;
}

interface Parameter {
  readonly index: number;
  readonly pipes?: readonly unknown[];
}

function unmade(place: string, what: string, className: string): string {
  return (
    `${place} has ${what}, which would be left out: Nest makes the enhancers of classes that stand in a list of providers ` +
    `themselves; list ${className} there, or give an instance instead of the class`
  );
}
