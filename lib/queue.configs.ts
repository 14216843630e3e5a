import type { DiscoveryService } from '@nestjs/core';
import { keyOfNamedRoot } from './decorators/metadata.js';

/** Keys of all `forRoot` with one. Known before anything is made: Nest has seen all modules by then. */
export function configKeys(discovery: DiscoveryService): readonly string[] {
  const keys = discovery.getProviders().map(({ token }) => keyOfNamedRoot(token));
  return [...new Set(keys.filter((key) => key !== undefined))];
}
