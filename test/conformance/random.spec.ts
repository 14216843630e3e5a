import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { beforeEach, expect, it } from 'vitest';
import type { QueueEngine } from '#lib/contract/engine.js';
import { IDS, MOMENT, steps, type Play, type Step } from './random-verbs.js';
import { runsOf } from '../model/runs.js';
import { atEnd } from '../support/cleanup.js';
import { useRedis } from '../support/redis.js';
import { LEAVES, memoryGround, redisGround, type Ground } from './support.js';

// The same calls on both engines, whatever they are: the same answers, and in the end the same jobs, counters, bells and events.
const redis = useRedis({ leaves: LEAVES, rights: 'all' });
const LIMITS = { deadMax: 3, deadAgeMs: 20_000, completedMax: 3, eventsAgeMs: 15_000 };
const runs = runsOf('conformance', 0.03);
const NOON = new Date().setUTCHours(12, 0, 0, 0);

let grounds: readonly Ground[];
let engines: readonly QueueEngine[];
let played = 0;

beforeEach(async () => {
  grounds = [redisGround(redis), memoryGround()];
  engines = grounds.map((ground) => ground.make(LIMITS));
  for (const engine of engines) {
    atEnd(() => engine.close());
    await engine.open();
    await engine.openEvents();
  }
});

async function begin(): Promise<Play> {
  const queue = `random${played++}`;
  let now = NOON;
  const setClock = async (at: number) => {
    now = at;
    for (const ground of grounds) await ground.setClock(at, queue);
  };
  await setClock(NOON);
  return {
    queue,
    get now() {
      return now;
    },
    seqs: new Map(),
    advance: (ms) => setClock(now + ms),
    async same(call) {
      const [onRedis, inMemory] = await Promise.all(engines.map((engine) => call(engine)));
      assert.deepStrictEqual(inMemory, onRedis);
      return onRedis as Awaited<ReturnType<typeof call>>;
    },
  };
}

/** Everything there is to be seen in the end. */
async function compare(play: Play): Promise<void> {
  const { queue } = play;
  const same: Play['same'] = (call) => play.same(call);
  const { violations } = await same((engine) => engine.admin.audit(queue));
  assert.deepStrictEqual(violations, []);
  for (const id of IDS) await same((engine) => engine.admin.get(queue, id));
  await same((engine) => engine.admin.counts(queue));
  await same(async (engine) => (await engine.admin.stats(queue, 2)).total);
  await same((engine) => engine.overdue(queue, 1e6));
  await same((engine) => engine.upkeep.deadJobs(queue, { after: null, limit: 100 }));
  await same((engine) => engine.lastEvent(queue));
  await same((engine) => eventsOf(engine, queue));
  await same((engine) => bellsOf(engine, queue));
}

/** Without their batches: what is one step here may be several there. */
async function eventsOf(engine: QueueEngine, queue: string) {
  const events: unknown[] = [];
  for (let after = 0; ;) {
    const batches = await engine.readEvents(new Map([[queue, after]]), 1);
    if (batches.length === 0) return events;
    for (const { at, events: said } of batches)
      for (const event of said)
        events.push({
          at,
          ...event,
          ...(event.type === 'delayed' && event.name === MOMENT ? { delayMs: 0 } : {}),
        });
    after = batches.at(-1)!.last;
  }
}

async function bellsOf(engine: QueueEngine, queue: string): Promise<number> {
  let rung = 0;
  while ((await engine.awaitBell([queue], 1)) !== null) rung += 1;
  return rung;
}

it(
  'answers, keeps and says in memory what it does on Redis, whatever is called',
  async () => {
    const property = fc.asyncProperty(steps, async (sequence: Step[]) => {
      runs.tick();
      const play = await begin();
      // From here on the process of each engine knows the time of its store.
      const clock = { worker: 'clock', seq: 1, leaseMs: 1, want: 0, maySuspect: false, settled: [] };
      for (const engine of engines) await engine.exchange(play.queue, clock);
      for (const { act } of sequence) await act(play);
      await compare(play);
    });
    await expect(fc.assert(property, runs.parameters as never)).resolves.toBeUndefined();
  },
  runs.timeout,
);
