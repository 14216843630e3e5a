import { expect, it } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { drainPool, type Drainable } from '#lib/worker/drain.js';

it('says in one line how many jobs are left whose end Redis did not confirm', async () => {
  const said: string[] = [];
  const pool = {
    queue: 'q',
    worker: 'w',
    runs: new Set(),
    exchanger: { idle: () => new Promise(() => {}), unconfirmed: () => 3, stop: () => said.push('stopped') },
    logger: { warn: (text: string) => said.push(text) },
    stopClaiming: () => undefined,
  } as unknown as Drainable;
  const report = await drainPool(pool, {} as QueueEngine, { timeoutMs: 0, graceMs: 0 });
  expect(said).toEqual([expect.stringMatching(/^queue 'q': Redis did not confirm .* 3 jobs/), 'stopped']);
  expect(report).toEqual({ finished: 0, released: [] });
});
