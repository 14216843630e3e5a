import { ApplicationConfig, type ExternalContextCreator } from '@nestjs/core';
import type { EnhancerKind } from '../options/module-options.js';

/** Those of the application that take part in jobs, as they are at the start. */
export function globalEnhancers(
  application: ExternalContextCreator,
  kinds: readonly EnhancerKind[],
): ApplicationConfig {
  const { applicationConfig: given } = (application as unknown as WithContainer).container;
  const config = new ApplicationConfig();
  if (kinds.includes('guards')) config.useGlobalGuards(...given.getGlobalGuards());
  if (kinds.includes('interceptors')) config.useGlobalInterceptors(...given.getGlobalInterceptors());
  if (kinds.includes('pipes')) config.useGlobalPipes(...given.getGlobalPipes());
  if (kinds.includes('filters')) config.useGlobalFilters(...given.getGlobalFilters());
  return config;
}

/** Where Nest keeps the configuration of an application, which has no token. */
interface WithContainer {
  readonly container: { readonly applicationConfig: ApplicationConfig };
}
