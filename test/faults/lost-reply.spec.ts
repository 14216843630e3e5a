import { expect, it } from 'vitest';
import type { AnyScript } from '#lib/engine/script.js';
import { claim, exchange } from '#lib/engine/scripts/work.js';
import { enqueuePlain } from '#lib/engine/scripts/adds.js';
import { retryDead } from '#lib/engine/scripts/upkeep.js';
import { RedisUnavailableError } from '#lib/errors.js';
import { generateId } from '#lib/job/job-id.js';
import { encodeBody, NO_OPTIONS } from '#lib/job/job-record.js';
import type { QueueModuleOptions } from '#lib/options/module-options.js';
import { Lane } from '#lib/producer/enqueuer.js';
import { isBlocked } from '../support/blocked.js';
import { startCut } from '../support/cut.js';
import { useRedis } from '../support/redis.js';
import { until, within } from '../support/wait.js';
import { bootWorking, drained } from './support/app.js';
import { onceEach } from './support/ledger.js';

const redis = useRedis();

async function bootBehindCut(more: QueueModuleOptions = {}) {
  const cut = await startCut(redis.url);
  const app = await bootWorking({ connection: cut.url, prefix: redis.prefix, ...more });
  return { cut, drained: () => drained(app), ...app };
}

/** A call of the script, by hash or in full, whose arguments pass `test`. */
function call(
  script: Pick<AnyScript, 'sha' | 'text'>,
  test: (words: readonly string[]) => boolean = () => true,
) {
  return (words: readonly string[]) =>
    /^eval/i.test(words[0]!) && [script.sha, script.text].includes(words[1]!) && test(words);
}

it('runs a job once when the reply to its claim is lost', async () => {
  const { cut, queue, runs, drained } = await bootBehindCut();
  const lost = cut.cutOnReply(call(exchange));
  // More jobs than one claim takes at the bell, so that the first exchange claims others.
  const ids = Array.from({ length: 50 }, (_, i) => `job-${i}`);
  await queue.addBulk(ids.map((id) => ({ name: 'one', data: null, options: { id } })));
  await lost.done;
  await drained();
  expect(runs).toEqual(onceEach(ids));
});

it('runs a job once when the reply to its claim at the bell is lost', async () => {
  const { cut, queue, engine, runs, drained } = await bootBehindCut();
  const lost = cut.cutOnReply(call(claim));
  // Earlier calls have their answers. From here on the next reply is lost.
  await engine.ring('work');
  await isBlocked(redis);
  await queue.add('one', null, { id: 'a' });
  await lost.done;
  await drained();
  expect(runs).toEqual(onceEach(['a']));
});

it('runs a job once when the reply to its settlement is lost', async () => {
  const { cut, queue, runs, drained } = await bootBehindCut();
  const lost = cut.cutOnReply(call(exchange, (words) => words.includes('a')));
  await queue.add('one', null, { id: 'a' });
  await lost.done;
  await drained();
  expect(runs).toEqual(onceEach(['a']));
});

it('runs jobs once when many replies in a row are lost, to claims and settlements alike', async () => {
  const { cut, queue, runs, drained } = await bootBehindCut();
  const lost = cut.cutOnReply(call(exchange), 5);
  const ids = Array.from({ length: 200 }, (_, i) => `job-${i}`);
  await queue.addBulk(ids.map((id) => ({ name: 'many', data: null, options: { id } })));
  await drained();
  expect(runs).toEqual(onceEach(ids));
  // The last replies are lost when nothing is left to do.
  await queue.addBulk(Array.from({ length: 50 }, () => ({ name: 'more', data: null })));
  await lost.done;
  await drained();
  expect([...runs.values()].every((times) => times === 1)).toBe(true);
  expect(runs.size).toBe(250);
});

it('runs jobs once when replies are lost while two exchanges are on their way', async () => {
  const { cut, queue, runs, drained } = await bootBehindCut();
  // The argument after the worker and the number.
  const isBeside = (words: readonly string[]) => words[3 + Number(words[2]) + 2] === '1';
  const lost = cut.cutOnReply(call(exchange, isBeside), 2);
  let isLost = false;
  void lost.done.then(() => (isLost = true));
  const ids: string[] = [];
  // A second exchange is sent only while this process waits for Redis. On a busy machine that is rare.
  while (!isLost) {
    const added = await queue.addBulk(Array.from({ length: 20_000 }, () => ({ name: 'many', data: null })));
    ids.push(...added.map(({ id }) => id));
    await drained();
  }
  expect(runs).toEqual(onceEach(ids));
});

it('stores a job once when the reply to its add is lost, even twice, and resolves the add', async () => {
  const { cut, queue, runs, drained } = await bootBehindCut();
  const lost = cut.cutOnReply(call(enqueuePlain), 2);
  const pair = await Promise.all([queue.add('one', null), queue.add('one', null)]);
  expect(pair.map(({ duplicate }) => duplicate)).toEqual([false, false]);
  await lost.done;
  const again = cut.cutOnReply(call(enqueuePlain), 2);
  const bulk = await queue.addBulk(Array.from({ length: 100 }, () => ({ name: 'many', data: null })));
  expect(bulk.every((result) => !result.duplicate)).toBe(true);
  await again.done;
  await drained();
  expect(runs).toEqual(onceEach([...pair, ...bulk].map(({ id }) => id)));
});

it('stores many jobs once when the answer to the transaction that stored them is lost', async () => {
  const { cut, queue, runs, drained } = await bootBehindCut();
  const many = () => queue.addBulk(Array.from({ length: 300 }, () => ({ name: 'many', data: null })));
  // The first call shows that the connection can run transactions.
  const bulks = [await many()];
  const lost = cut.cutOnReply(([name]) => name!.toLowerCase() === 'exec');
  bulks.push(await many(), await many());
  await lost.done;
  await drained();
  const added = bulks.flat();
  expect(added.every(({ duplicate }) => !duplicate)).toBe(true);
  expect(runs).toEqual(onceEach(added.map(({ id }) => id)));
});

/** Adds with a known outcome. Each of them ends within its time limit. */
class Adds {
  readonly stored: string[] = [];
  readonly refused: string[] = [];
  readonly unknown: string[] = [];

  constructor(private readonly timeoutMs: number) {}

  async decide(ids: readonly string[], added: Promise<unknown>): Promise<void> {
    const what = `the add of ${ids[0]} is decided`;
    try {
      await within(added, { timeout: this.timeoutMs + 1_000, what });
      this.stored.push(...ids);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      (error.applied === 'no' ? this.refused : this.unknown).push(...ids);
    }
  }
}

it.each([
  ['that are patient', 5_000],
  ['that give up soon', 60],
])(
  'loses and doubles no jobs %s on a line that breaks at random bytes in both directions',
  async (_, enqueueTimeout) => {
    const TRIALS = 110;
    const { cut, queue, runs, drained } = await bootBehindCut({ enqueueTimeout });
    const adds = new Adds(enqueueTimeout);
    for (let trial = 0; trial < TRIALS; trial++) {
      await until(() => queue.counts(), { what: 'the line is whole' });
      const direction = trial % 2 === 0 ? 'up' : 'down';
      // About as many bytes as a trial sends, so that the cut may hit any request or reply, also those that set up a
      // new connection.
      cut.cutAfterBytes(direction, 1 + Math.floor(Math.random() * (direction === 'up' ? 1_200 : 300)));
      const singles = [0, 1, 2].map((i) => `${trial}-single-${i}`);
      const bulk = [0, 1, 2, 3, 4].map((i) => ({
        name: 'many',
        data: null,
        options: { id: `${trial}-bulk-${i}` },
      }));
      await Promise.all([
        ...singles.map((id) => adds.decide([id], queue.add('one', null, { id }))),
        adds.decide(
          bulk.map((job) => job.options.id),
          queue.addBulk(bulk),
        ),
      ]);
      await cut.heal();
    }
    await drained();

    const { stored, refused, unknown } = adds;
    expect(stored.length + refused.length + unknown.length).toBe(TRIALS * 8);
    expect(stored.filter((id) => runs.get(id) !== 1)).toEqual([]);
    expect(refused.filter((id) => runs.has(id))).toEqual([]);
    expect([...runs].filter(([, times]) => times > 1)).toEqual([]);
    expect(cut.counters.cuts).toBeGreaterThan(TRIALS / 2);
  },
  40_000,
);

it('loses and doubles no jobs of transactions on a line that breaks at random bytes in both directions', async () => {
  const TRIALS = 60;
  const { cut, engine, runs, drained } = await bootBehindCut();
  const lane = new Lane(engine, 'work', { timeoutMs: 5_000, isBound: false });
  const adds = new Adds(5_000);
  const body = encodeBody('many', Date.now(), NO_OPTIONS, 'null');
  const addMany = () => {
    const ids = Array.from({ length: 250 }, () => generateId(Date.now()));
    const jobs = ids.map((id) => ({ id, name: 'many', body }));
    return adds.decide(ids, lane.send(jobs, performance.now() + 5_000, null));
  };
  for (let trial = 0; trial < TRIALS; trial++) {
    // The first call shows that the connection can run transactions.
    await addMany();
    const direction = trial % 2 === 0 ? 'up' : 'down';
    cut.cutAfterBytes(direction, 1 + Math.floor(Math.random() * (direction === 'up' ? 40_000 : 120)));
    await addMany();
    await cut.heal();
  }
  await drained();

  const { stored, refused, unknown } = adds;
  expect([stored.length, refused, unknown]).toEqual([TRIALS * 500, [], []]);
  expect(stored.filter((id) => runs.get(id) !== 1)).toEqual([]);
  expect(runs.size).toBe(stored.length);
  expect(cut.counters.cuts).toBeGreaterThan(TRIALS / 2);
}, 40_000);

it('says that the connection broke, without advice of ioredis', async () => {
  const { cut, queue } = await bootBehindCut();
  cut.cutOnReply(call(retryDead));
  await expect(queue.dead.retry({})).rejects.toThrow(
    /^dead\.retry: the connection broke; whether it took effect is unknown$/,
  );
});
