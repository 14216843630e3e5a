import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import type { Job } from '#lib/job/job.js';
import { QueueTesting, QueueTestingModule } from '#lib/subpaths/testing.js';
import { QueueModule } from '#lib/module/queue.module.js';
import { Test } from '@nestjs/testing';
import { setBench } from './support.js';

const run = promisify(execFile);

describe('the resources that a test leaves', () => {
  it('do not keep its process alive, also if its module is never closed', async () => {
    const script = fileURLToPath(new URL('never-closed.mjs', import.meta.url));
    const { stdout } = await run(process.execPath, [script], { timeout: 15_000 });
    expect(stdout).toBe('delayed, run, scheduled, waited\n');
  });

  it('do not affect the next one, although both compile the same module', async () => {
    const imports = [QueueTestingModule.forRoot(), QueueModule.registerQueue({ name: 'work' })];
    const added: number[] = [];
    for (const round of [1, 2]) {
      // oxlint-disable-next-line no-await-in-loop -- one test after the other
      const module = await Test.createTestingModule({ imports }).compile();
      // oxlint-disable-next-line no-await-in-loop -- see above
      await module.init();
      // oxlint-disable-next-line no-await-in-loop -- see above
      await module.get('godwit:queue:work', { strict: false }).add('round', round);
      added.push(module.get(QueueTesting).queue('work').added().length);
    }
    expect(added).toEqual([1, 1]);
  });
});

describe('fake timers of the test runner', () => {
  it('do not block a test, and apply to the timeout of a handler', async () => {
    vi.useFakeTimers({ now: new Date('2030-01-01T00:00:00Z') });
    try {
      const { testing, work, queue } = await setBench({
        root: { now: undefined as never },
        handlers: { work: { slow: () => new Promise(() => {}), quick: (job: Job) => job.data } },
      });
      expect(testing.now).toEqual(new Date('2030-01-01T00:00:00Z'));
      await queue.add('quick', 1, { delay: '1h' });
      await testing.advance('1h');
      expect(await work.drain()).toMatchObject([{ result: 1 }]);
      await queue.add('slow', {}, { timeout: '1m', attempts: 1 });
      const slow = work.runNext();
      await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
      await vi.advanceTimersByTimeAsync(60_000);
      expect(await slow).toMatchObject({ outcome: 'dead', error: { reason: 'timeout' } });
    } finally {
      vi.useRealTimers();
    }
  });
});
