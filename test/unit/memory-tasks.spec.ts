import { expect, it } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { MemoryEngine } from '#lib/memory/memory-engine.js';
import { NotRunningError } from '#lib/errors.js';
import { LIMITS } from '../scripts/support.js';

it('no other program can add a task to the memory of this process, so there is never one to dispatch', async () => {
  const engine: QueueEngine = new MemoryEngine({ limitsOf: () => LIMITS });
  const call = { delayedKey: 'mails:delayed', readyKey: 'mails:ready', limit: 10, unit: 's' } as const;
  expect(await engine.tasks.dispatch(call)).toEqual({ dispatched: 0, delayed: 0, ready: 0, dueInMs: null });
  await engine.close();
  await expect(engine.tasks.dispatch(call)).rejects.toThrow(NotRunningError);
});
