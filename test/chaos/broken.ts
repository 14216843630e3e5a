import type { ConnectionOption } from '#lib/index.js';
import { patchedClient, type Patch } from '../support/patched-client.js';
import type { Broken, ChildPlan } from './plan.js';

/** Settles every outcome, even if the worker does not hold the job. */
const NO_FENCING: readonly (readonly [string | RegExp, string])[] = [
  [`if last_seq == nil and seq > 1 then return { 'unknown-worker', now } end`, ''],
  [/if (redis\.call\('SREM', KEYS\[\d+\], id\)) == 1 then return true end/, '$1 do return true end'],
  [`if member[i] == 0 then return false end`, ''],
];

/** Hands out a job without recording who holds it. */
const FORGET: typeof NO_FENCING = [[/redis\.call\('SADD', KEYS\[\d+\], unpack\(ids\)\)/, '#ids']];
const FORGET_CLAIMED: typeof FORGET = [[/redis\.pcall\('SADD', KEYS\[\d+\], unpack\(ids\)\)/, '#ids']];

/** By the scripts that they change. */
const PATCHES: Record<Broken, Readonly<Record<string, typeof NO_FENCING>>> = {
  'no-fencing': { exchange: NO_FENCING },
  'pop-and-forget': {
    exchange: [...NO_FENCING, ...FORGET],
    claim: FORGET_CLAIMED,
  },
};

/** The connection of the library under test. In a run that must fail, it breaks the engine. */
export function connectionOf({ url, broken }: ChildPlan): ConnectionOption {
  if (!broken) return url;
  return patchedClient(url, { patch: scriptPatch(broken) });
}

/** Changes the scripts of an engine in this way. */
export function scriptPatch(broken: Broken): Patch {
  return (name, text) => replaceAll(name, text, PATCHES[broken][name] ?? []);
}

function replaceAll(script: string, text: string, patches: typeof NO_FENCING): string {
  for (const [good, bad] of patches) {
    const changed = text.replace(good, bad);
    if (changed === text) throw new Error(`${script}.lua does not say '${good}' any more`);
    text = changed;
  }
  return text;
}
