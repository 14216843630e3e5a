import type { DiscoveryService } from '@nestjs/core';
import { keyOfNamedRoot, ROOT_OPTIONS } from '../decorators/metadata.js';
import type { QueueRegistry } from './queue.registry.js';

/** Keys of all `forRoot` with one. Known before anything is made: Nest has seen all modules by then. */
export function configKeys(discovery: DiscoveryService): readonly string[] {
  const keys = discovery.getProviders().map(({ token }) => keyOfNamedRoot(token));
  return [...new Set(keys.filter((key) => key !== undefined))];
}

/** Keys of the configurations that have a store: all with queues, and `''`, the one without a key, where there is one. */
export function configsInUse(discovery: DiscoveryService, registry: QueueRegistry): readonly string[] {
  const hasRoot = discovery.getProviders().some(({ token }) => token === ROOT_OPTIONS);
  const others = configKeys(discovery).filter((key) => registry.queuesOf(key).length > 0);
  return hasRoot ? ['', ...others] : others;
}
