import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { EnqueueAnswer, EnqueueCall, QueueEngine } from '#lib/contract/engine.js';
import {
  EnqueueBufferFullError,
  NotRunningError,
  RedisRefusedError,
  RedisUnavailableError,
} from '#lib/errors.js';
import { Enqueuer } from '#lib/producer/enqueuer.js';
import { addInChunks } from '#lib/producer/bulk.js';
import type { MadeJob } from '#lib/producer/job-maker.js';
import { endOfTurn, latch, type Latch } from '../support/wait.js';

/** An engine that answers when the test says so. */
function slow() {
  const calls: { readonly ids: string[]; readonly answer: Latch<EnqueueAnswer> }[] = [];
  const enqueue = (_: string, { jobs }: EnqueueCall) => {
    const answer = latch<EnqueueAnswer>();
    calls.push({ ids: jobs.map(({ id }) => id), answer });
    return answer.promise;
  };
  const enqueuer = new Enqueuer({ enqueue } as unknown as QueueEngine, 'work', {
    timeoutMs: 5_000,
    isBound: false,
    maxBuffered: 1_000,
  });
  const given: Promise<string>[] = [];
  const addOne = (id: string, hasOwnId: boolean) =>
    enqueuer.add({ id, name: 'job', body: '', hasOwnId, replication: null, given: undefined });
  const add = (count: number) => {
    for (let i = 0; i < count; i++) given.push(addOne(`j${given.length}`, false).then((result) => result.id));
  };
  const addOwn = (...ids: string[]) => ids.map((id) => addOne(id, true));
  const sizes = () => calls.map(({ ids }) => ids.length);
  const store = (from: number, to?: number) => {
    for (const { answer } of calls.slice(from, to)) answer.open({ kind: 'stored', duplicates: [] });
    return endOfTurn();
  };
  const answered = async () => {
    void store(0);
    const sent = calls.flatMap(({ ids }) => ids);
    expect(await Promise.all(given)).toEqual(sent);
    expect(sent).toEqual(sent.map((_, i) => `j${i}`));
  };
  return { calls, add, addOwn, sizes, store, answered };
}

const endOfTick = () => new Promise<void>((resolve) => process.nextTick(resolve));

describe('adds of one tick', () => {
  it.each([
    [1, [1]],
    [49, [49]],
    [50, [50]],
    [51, [50, 1]],
    [100, [50, 50]],
    [400, [50, 350]],
  ])('are sent in two calls if they are many and no call is in flight: %i', async (count, expected) => {
    const { add, sizes, answered } = slow();
    add(count);
    await endOfTick();
    expect(sizes()).toEqual(expected);
    await answered();
  });

  it.each([
    [1, [1, 50], [1, 50, 150]],
    [2, [2, 100], [2, 100, 100]],
  ])(
    'are sent in two calls while one job is in flight, in one while more are, and wait while two calls are: %i',
    async (first, meanwhile, behind) => {
      const { add, sizes, store, answered } = slow();
      add(first);
      await endOfTick();
      add(100);
      await endOfTick();
      add(100);
      await endOfTick();
      expect(sizes()).toEqual(meanwhile);
      await store(0, 1);
      expect(sizes()).toEqual(behind);
      await answered();
    },
  );

  it('are sent at once if the last call had one job and is answered: the first alone, the others together', async () => {
    const { add, sizes, store, answered } = slow();
    add(1);
    expect(sizes()).toEqual([]);
    await endOfTick();
    add(1);
    expect(sizes()).toEqual([1]);
    await endOfTick();
    expect(sizes()).toEqual([1, 1]);
    await store(0);
    add(3);
    expect(sizes()).toEqual([1, 1, 1]);
    await endOfTick();
    expect(sizes()).toEqual([1, 1, 1, 2]);
    await store(0);
    add(1);
    expect(sizes()).toEqual([1, 1, 1, 2]);
    await endOfTick();
    expect(sizes()).toEqual([1, 1, 1, 2, 1]);
    await answered();
  });
});

describe('adds with an id that is in flight', () => {
  it('are sent when the call with the id has ended, and later adds not before', async () => {
    const { calls, addOwn, store } = slow();
    const ids = () => calls.map((call) => call.ids);
    const added = addOwn('a', 'b', 'a', 'c', 'b', 'd');
    await endOfTick();
    expect(ids()).toEqual([['a', 'b']]);
    void addOwn('e');
    await endOfTick();
    expect(ids()).toEqual([['a', 'b']]);
    calls[0]!.answer.open({ kind: 'stored', duplicates: [] });
    await endOfTurn();
    expect(ids()).toEqual([
      ['a', 'b'],
      ['a', 'c', 'b', 'd', 'e'],
    ]);
    calls[1]!.answer.open({
      kind: 'stored',
      duplicates: ['a', 'b'].map((id) => ({ id, state: 'waiting' as const })),
    });
    const results = await Promise.all(added);
    expect(results.map(({ duplicate }) => duplicate)).toEqual([false, false, true, false, true, false]);
    void addOwn('a');
    await endOfTick();
    expect(ids().at(-1)).toEqual(['a']);
    await store(2);
  });

  it('are also sent when that call has failed', async () => {
    const { calls, addOwn, store } = slow();
    const [first, second] = addOwn('a', 'a');
    await endOfTick();
    calls[0]!.answer.open(Promise.reject(new Error('no')) as never);
    await expect(first).rejects.toThrow('no');
    await endOfTurn();
    expect(calls.map((call) => call.ids)).toEqual([['a'], ['a']]);
    await store(1);
    expect(await second).toMatchObject({ id: 'a', duplicate: false });
  });
});

const jobOf = (id: string, body = ''): MadeJob => ({
  id,
  name: 'job',
  body,
  hasOwnId: false,
  replication: null,
  given: undefined,
});

/** An engine that answers when the test says so, and the outcome of each add. */
function enqueuerOf(enqueue: (call: EnqueueCall) => Promise<EnqueueAnswer>, limits = {}) {
  const engine = { enqueue: (_: string, call: EnqueueCall) => enqueue(call) };
  return new Enqueuer(engine as unknown as QueueEngine, 'work', {
    timeoutMs: 5_000,
    isBound: false,
    maxBuffered: 1_000,
    ...limits,
  });
}

const STORED: EnqueueAnswer = { kind: 'stored', duplicates: [] };

describe('the buffer of adds', () => {
  it('accepts every add of one tick, however many there are', async () => {
    const enqueuer = enqueuerOf(async () => STORED);
    const added = Array.from({ length: 5_000 }, (_, i) => enqueuer.add(jobOf(`j${i}`)));
    expect((await Promise.all(added)).length).toBe(5_000);
  });

  it('refuses adds of later ticks while too many wait, and accepts them again once there are fewer', async () => {
    const answers: Latch<EnqueueAnswer>[] = [];
    const enqueuer = enqueuerOf(() => {
      answers.push(latch<EnqueueAnswer>());
      return answers.at(-1)!.promise;
    });
    const first = Array.from({ length: 2_000 }, (_, i) => enqueuer.add(jobOf(`j${i}`)));
    await endOfTurn();
    const refused = await enqueuer.add(jobOf('refused')).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(EnqueueBufferFullError);
    expect(refused).toMatchObject({ queue: 'work', limit: 1_000, applied: 'no' });
    for (let i = 0; i < answers.length; i++) {
      answers[i]!.open(STORED);
      await endOfTurn();
    }
    await Promise.all(first);
    const again = enqueuer.add(jobOf('again'));
    await endOfTurn();
    answers.at(-1)!.open(STORED);
    expect(await again).toMatchObject({ id: 'again' });
  });

  it('refuses adds that have waited until their timeout while every call is in flight', async () => {
    const enqueuer = enqueuerOf(() => new Promise(() => undefined), { timeoutMs: 60 });
    void enqueuer.add(jobOf('a'));
    await endOfTurn();
    void enqueuer.add(jobOf('b'));
    await endOfTurn();
    const since = performance.now();
    const late = await enqueuer.add(jobOf('c')).catch((error: unknown) => error);
    expect(late).toMatchObject({ code: 'GODWIT_REDIS_UNAVAILABLE', applied: 'no' });
    expect(performance.now() - since).toBeLessThan(1_000);
  });
});

describe('the calls of adds', () => {
  it('contain at most a mebibyte of single adds', async () => {
    const sizes: number[] = [];
    const enqueuer = enqueuerOf(async ({ jobs }) => {
      sizes.push(jobs.length);
      return STORED;
    });
    await Promise.all([1, 2, 3, 4, 5].map((i) => enqueuer.add(jobOf(`j${i}`, 'x'.repeat(400_000)))));
    expect(sizes).toEqual([2, 2, 1]);
  });

  it('contain a bulk as a whole up to 32 MiB, and at most 4 MiB of a larger one', async () => {
    const sizes: number[] = [];
    const enqueuer = enqueuerOf(async ({ jobs }) => {
      sizes.push(jobs.length);
      return STORED;
    });
    const body = 'x'.repeat(1_000_000);
    const jobs = (count: number) => Array.from({ length: count }, (_, i) => jobOf(`j${i}`, body));
    await addInChunks('work', jobs(33), enqueuer);
    expect(sizes).toEqual([33]);
    await addInChunks('work', jobs(34), enqueuer);
    expect(sizes).toEqual([33, ...Array(8).fill(4), 2]);
  });

  it('are not repeated with too little time for an answer after a refusal, so that its error is reported', async () => {
    const times: number[] = [];
    const refuse = async ({ withinMs }: EnqueueCall) => {
      times.push(withinMs);
      throw new RedisRefusedError('add', 'MISCONF', 'the disk is full');
    };
    const enqueuer = enqueuerOf(refuse, { timeoutMs: 1_000 });
    await expect(enqueuer.add(jobOf('a'))).rejects.toMatchObject({ reply: 'MISCONF', applied: 'no' });
    expect(times.length).toBeGreaterThan(2);
    expect(Math.min(...times)).toBeGreaterThan(45);
  });

  it('never report that nothing was stored after a try without an answer, also if the store was closed since', async () => {
    let tries = 0;
    const enqueuer = enqueuerOf(async () => {
      if (tries++ > 0) throw new NotRunningError('add');
      throw new RedisUnavailableError('add', 'unknown', 'the connection was closed before the answer came');
    });
    await expect(enqueuer.add(jobOf('a'))).rejects.toMatchObject({
      code: 'GODWIT_REDIS_UNAVAILABLE',
      applied: 'unknown',
    });
    expect(tries).toBe(2);
  });
});

it('a call after an outage has enough time, also if its first adds have little left', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const begin = performance.now();
  const [timeoutMs, awayMs, takesMs] = [3_000, 3_300, 20];
  const enqueue = (_: string, { withinMs }: EnqueueCall) =>
    new Promise((resolve, reject) => {
      const answersInMs = Math.max(0, begin + awayMs - performance.now()) + takesMs;
      const late = new RedisUnavailableError('add', 'unknown', 'away');
      if (answersInMs > withinMs) setTimeout(() => reject(late), withinMs);
      else setTimeout(() => resolve({ kind: 'stored', duplicates: [] }), answersInMs);
    });
  const enqueuer = new Enqueuer({ enqueue } as unknown as QueueEngine, 'work', {
    timeoutMs,
    isBound: true,
    maxBuffered: 1_000,
  });
  const failed: { readonly addedAt: number; readonly waitedMs: number }[] = [];
  const adds: Promise<unknown>[] = [];
  for (let at = 0; at < 4_000; at += 10) {
    const job = { id: `j${at}`, name: 'job', body: '', hasOwnId: false, replication: null, given: undefined };
    const ended = () => failed.push({ addedAt: at, waitedMs: performance.now() - begin - at });
    adds.push(enqueuer.add(job).catch(ended));
    await vi.advanceTimersByTimeAsync(10);
  }
  await vi.advanceTimersByTimeAsync(timeoutMs);
  await Promise.all(adds);
  // Nobody could store the adds of the first 300 ms.
  expect(failed.length).toBeGreaterThan(30);
  expect(Math.max(...failed.map(({ addedAt }) => addedAt))).toBeLessThan(700);
  expect(Math.min(...failed.map(({ waitedMs }) => waitedMs))).toBeGreaterThan(timeoutMs / 2);
});
