import { expect, it } from 'vitest';
import type { RedisStore } from '#lib/engine/redis-store.js';
import { audit } from '#lib/engine/scripts/audit.js';
import { cancel } from '#lib/engine/scripts/cancel.js';
import { counts } from '#lib/engine/scripts/counts.js';
import { get } from '#lib/engine/scripts/get.js';
import { obliterate } from '#lib/engine/scripts/obliterate.js';
import { remove } from '#lib/engine/scripts/remove.js';
import { repair } from '#lib/engine/scripts/repair.js';
import type { AnyScript } from '#lib/engine/script.js';
import { useQueue } from './support.js';
import { changingNothing } from './unchanged.js';

// Scripts that read the active sets of all workers. The workers were declared a moment ago.
const q = useQueue();

it.each<AnyScript>([audit, cancel, counts, get, obliterate, remove, repair])(
  '$name asks again where a worker came in between',
  async (script) => {
    await q.hold('a');
    const { store } = q.engine as unknown as { store: RedisStore };
    const args = { id: 'a', reason: 'why', workers: '', maxEvents: 0, force: 1, all: 1, max: 100 };
    const keys = { ...q.keys.fixed, stats: q.key('stats'), bodies: q.key('bodies') };
    expect(await changingNothing(q, () => store.run(script, keys, args, { ids: [] }, []))).toBe('again');
  },
);
