import { ApplicationConfig, type ExternalContextCreator } from '@nestjs/core';
import type { EnhancerKind } from '../options/module-options.js';

/** Those of the application that take part in jobs, as they are at the start. */
export function globalEnhancers(
  application: ExternalContextCreator,
  kinds: readonly EnhancerKind[],
): { readonly config: ApplicationConfig; readonly faults: readonly string[] } {
  const { applicationConfig: given } = (application as unknown as WithContainer).container;
  const config = new ApplicationConfig();
  const scoped = {
    guards: given.getGlobalRequestGuards(),
    interceptors: given.getGlobalRequestInterceptors(),
    pipes: given.getGlobalRequestPipes(),
    filters: given.getGlobalRequestFilters(),
  };
  if (kinds.includes('guards')) config.useGlobalGuards(...given.getGlobalGuards());
  if (kinds.includes('interceptors')) config.useGlobalInterceptors(...given.getGlobalInterceptors());
  if (kinds.includes('pipes')) config.useGlobalPipes(...given.getGlobalPipes());
  if (kinds.includes('filters')) config.useGlobalFilters(...given.getGlobalFilters());
  const faults = kinds.flatMap((kind) =>
    scoped[kind].map(
      ({ metatype }) =>
        `forRoot().enhancers.global takes in ${metatype?.name}, which is request-scoped; ` +
        `make it a singleton, put it on the processors instead, or leave '${kind}' out`,
    ),
  );
  return { config, faults };
}

/** Where Nest keeps the configuration of an application, which has no token. */
interface WithContainer {
  readonly container: { readonly applicationConfig: ApplicationConfig };
}
