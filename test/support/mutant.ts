import type { RedisConnection } from '#lib/index.js';
import { mutantOf } from '../mutation/mutants.js';
import { patchedClient, type Patch } from './patched-client.js';

/**
 * The connection of specs that test scripts. Normally just the URL. In mutation tests, a factory of clients that run
 * the mutant named in GODWIT_MUTANT: a spec that then still passes did not notice the mutant.
 */
export function connectionTo(url: string): RedisConnection {
  const id = process.env['GODWIT_MUTANT'];
  if (id === undefined) return url;
  return patchedClient(url, { patch: mutantOf(id).patch }) as RedisConnection;
}

/** The same for specs that change the scripts themselves: the mistake, if there is one. */
export function mutated(): Patch | undefined {
  const id = process.env['GODWIT_MUTANT'];
  return id === undefined ? undefined : mutantOf(id).patch;
}
