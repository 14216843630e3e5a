import { expect, it } from 'vitest';
import type { RedisStore } from '#lib/engine/redis-store.js';
import { audit, repair } from '#lib/engine/scripts/audit.js';
import { cancel, counts, get, obliterate, remove } from '#lib/engine/scripts/admin.js';
import { setLimits } from '#lib/engine/scripts/limits.js';
import type { AnyScript } from '#lib/engine/script.js';
import { useQueue } from './support.js';
import { changingNothing } from './unchanged.js';

// Scripts that read the active sets of all workers. The workers were declared a moment ago.
const q = useQueue();

it.each<AnyScript>([audit, cancel, counts, get, obliterate, remove, repair, setLimits])(
  '$name asks again if a worker appeared in between',
  async (script) => {
    await q.hold('a');
    const { store } = q.engine as unknown as { store: RedisStore };
    const limits = { field: 'q', part: 'live', rule: '{"concurrency":1}', flags: 'q' };
    const args = { id: 'a', reason: 'why', maxEvents: 0, force: 1, all: 1, max: 100, ...limits };
    const keys = { ...q.keys.fixed, stats: q.key('stats'), bodies: q.key('bodies') };
    const askedBy = (...workers: string[]) =>
      store.run(
        script,
        keys,
        { ...args, workers: workers.join('\n') },
        { ids: [] },
        workers.map((worker) => q.keys.active(worker)),
      );
    expect(await changingNothing(q, () => askedBy())).toBe('again');
    // The same number, but other workers.
    expect(await changingNothing(q, () => askedBy('other'))).toBe('again');
  },
);
