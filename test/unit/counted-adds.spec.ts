import { describe, expect, it } from 'vitest';
import type { EnqueueAnswer, EnqueueCall, QueueEngine } from '#lib/contract/engine.js';
import { RedisUnavailableError } from '#lib/errors.js';
import { Observers } from '#lib/module/observers.js';
import { Enqueuer } from '#lib/producer/enqueuer.js';

/** An enqueuer whose tries get these answers in turn, with what an observer counts of its adds. */
function counting(answers: readonly (EnqueueAnswer | Error)[]) {
  const left = [...answers];
  const enqueue = async (_: string, _call: EnqueueCall) => {
    const answer = left.shift()!;
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const engine = { enqueue, schedules: { fire: () => undefined } } as unknown as QueueEngine;
  const counts = { added: 0, duplicate: 0, full: 0, dropped: 0, failed: 0, removed: 0 };
  new Observers(engine, { history: false, telemetry: undefined }).add({
    ended: () => {},
    added: (_, names) => (counts.added += names.length),
    notAdded: (_, names, why) => (counts[why] += names.length),
    madeRoom: (_, count) => (counts.removed += count),
  });
  const enqueuer = new Enqueuer(engine, 'work', { timeoutMs: 5_000, isBound: false, maxBuffered: 1_000 });
  const add = (replicas?: number) => {
    const replication = replicas === undefined ? null : { replicas, timeoutMs: 5_000 };
    return enqueuer.add({ id: 'a', name: 'job', body: '', hasOwnId: true, replication, given: undefined });
  };
  return { add, counts, left };
}

const away = () => new RedisUnavailableError('add', 'no', 'the connection is down');
const stored = (replicas?: number): EnqueueAnswer => ({
  kind: 'stored',
  duplicates: [],
  ...(replicas !== undefined && { replicas }),
});

describe('an add that takes several tries', () => {
  it('is counted once as added', async () => {
    const { add, counts, left } = counting([away(), away(), stored()]);
    await add();
    expect([left, counts]).toMatchObject([[], { added: 1, duplicate: 0, failed: 0 }]);
  });

  it('is counted once as added while replicas confirm it', async () => {
    const { add, counts, left } = counting([stored(0), away(), stored(1)]);
    await add(1);
    expect([left, counts]).toMatchObject([[], { added: 1, duplicate: 0, failed: 0 }]);
  });

  it('is counted once as failed if it fails', async () => {
    const { add, counts, left } = counting([away(), away(), new Error('a fault')]);
    await expect(add()).rejects.toThrow('a fault');
    expect([left, counts]).toMatchObject([[], { added: 0, duplicate: 0, failed: 1 }]);
  });

  it('is counted as a duplicate if another job has its id', async () => {
    const duplicates = [{ id: 'a', state: 'waiting' as const }];
    const { add, counts } = counting([away(), { kind: 'stored', duplicates }]);
    await add();
    expect(counts).toMatchObject({ added: 0, duplicate: 1, dropped: 0, failed: 0 });
  });

  it('is counted as dropped if the queue is full, and no other job may be removed', async () => {
    const duplicates = [{ id: 'a', dropped: true as const }];
    const { add, counts } = counting([{ kind: 'stored', duplicates }]);
    await add();
    expect(counts).toEqual({ added: 0, duplicate: 0, full: 0, dropped: 1, failed: 0, removed: 0 });
  });

  it('is counted once with the jobs that it removed', async () => {
    const { add, counts } = counting([away(), { kind: 'stored', duplicates: [], removed: 3 }]);
    await add();
    expect(counts).toMatchObject({ added: 1, dropped: 0, removed: 3 });
  });
});
