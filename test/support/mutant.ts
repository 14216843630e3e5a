import type { RedisConnection } from '#lib/index.js';
import { mutantOf } from '../mutation/mutants.js';
import { patchedClient } from './patched-client.js';

/**
 * The connection of specs that test scripts: just the URL, but while mutants are tried, clients that run the one named in
 * GODWIT_MUTANT. A spec that passes then has missed a mistake.
 */
export function connectionTo(url: string): RedisConnection {
  const id = process.env['GODWIT_MUTANT'];
  if (id === undefined) return url;
  return patchedClient(url, { patch: mutantOf(id).patch }) as RedisConnection;
}
