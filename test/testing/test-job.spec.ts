import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { JobAbortedError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import { createTestJob } from '#lib/subpaths/testing.js';

class Resizer {
  async resize(job: Job<{ width: number }>) {
    await job.log(`resizing to ${job.data.width}\nattempt ${job.attempt}`);
    for (let step = 1; step <= 2; step++) {
      job.signal.throwIfAborted();
      await job.progress({ step });
    }
    return job.data.width;
  }
}

describe('createTestJob', () => {
  it('gives a handler a complete job, and records its progress and log', async () => {
    const job = createTestJob({ data: { width: 80 }, attempt: 2 });
    expect(await new Resizer().resize(job)).toBe(80);
    expect(job.progressed).toEqual([{ step: 1 }, { step: 2 }]);
    expect(job.logged).toEqual(['resizing to 80 attempt 2']);
  });

  it('has default values', () => {
    const job = createTestJob();
    expect(job).toMatchObject({ id: 'test-job', name: 'test', queue: 'test', attempt: 1, attempts: 3 });
    expect(job.data).toBeUndefined();
    expect(job.createdAt).toBeInstanceOf(Date);
    const at = new Date(0);
    const given = createTestJob({ id: 'i', name: 'n', queue: 'q', attempts: 7, createdAt: at });
    expect(given).toMatchObject({ id: 'i', name: 'n', queue: 'q', attempts: 7, createdAt: at });
  });

  it('has the JSON of a job', () => {
    const job = createTestJob({ data: { width: 80 }, createdAt: new Date(0) });
    const shown = JSON.parse(JSON.stringify(job));
    expect(shown).toMatchObject({
      id: 'test-job',
      data: { width: 80 },
      createdAt: '1970-01-01T00:00:00.000Z',
    });
    expect(Object.keys(shown)).toEqual(Object.keys(job.toJSON()));
    expect(shown).not.toHaveProperty('signal');
  });

  it('refuses attempts that no job has', () => {
    expect(() => createTestJob({ attempt: -1 })).toThrow(
      'createTestJob().attempt must be an integer from 1 to 9007199254740991, got -1 (number)',
    );
    expect(() => createTestJob({ attempts: Number.NaN })).toThrow('createTestJob().attempts must be');
  });

  it('is shown without its internals by console.log', () => {
    const job = createTestJob({ data: { width: 80 } });
    expect(inspect(job)).toMatch(/^\{\s+id: 'test-job',[^]+ data: \{ width: 80 \}/);
    expect(inspect(job)).not.toMatch(/policy|controller/);
  });

  it('can be aborted', async () => {
    const job = createTestJob({ data: { width: 80 } });
    job.abort('shutdown', 'the ship sinks');
    await expect(new Resizer().resize(job)).rejects.toMatchObject({ reason: 'shutdown' });
    expect(job.signal.reason).toBeInstanceOf(JobAbortedError);
    const other = createTestJob();
    const { signal } = other;
    expect(signal.aborted).toBe(false);
    other.abort();
    expect(signal.reason).toMatchObject({ reason: 'cancelled' });
  });

  it('refuses progress as a job does', async () => {
    await expect(createTestJob().progress(10n)).rejects.toMatchObject({ code: 'GODWIT_INVALID_PAYLOAD' });
  });
});
