import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { processKeys } from '#lib/engine/keys.js';
import { allScripts } from '#lib/engine/script.js';
import { GodwitError, RedisRefusedError, RedisUnavailableError } from '#lib/errors.js';
import type { Job } from '#lib/job/job.js';
import type { JobOptions } from '#lib/options/job-options.js';
import { bodyCount, bootQueue, type QueueApp } from '../support/queue-app.js';
import { isBlocked } from '../support/blocked.js';
import { character } from '../support/character.js';
import { useRedis } from '../support/redis.js';
import { useServer } from '../support/server.js';
import { until } from '../support/wait.js';
import { holds, patience, TIMES } from './support/check.js';
import { ODD } from './support/hostile.js';
import { expectNothingUnhandled } from './support/unhandled.js';
import { maybeText, text } from './support/texts.js';

// Whatever is given to the public API is refused with a typed error and changes nothing, or is stored and comes back as it
// was given. A server of its own, so that every key and script on it is ours.
const redis = useRedis({ server: useServer() });
expectNothingUnhandled();
let app: QueueApp;
/** The data that handlers got, by id. */
let runs: Map<string, { name: string; json: string; times: number }>;

async function boot(): Promise<void> {
  runs = new Map();
  const keep = ({ id, name, data }: Job) => {
    const before = runs.get(id)?.times ?? 0;
    runs.set(id, { name, json: JSON.stringify(data), times: before + 1 });
  };
  const queue = { maxPayloadBytes: 20_000, defaults: { retention: '1h', idHeldBy: ['completed'] as const } };
  app = await bootQueue(redis, { queue, handlers: { '*': keep }, concurrency: 50, watch: false });
}

/** Every key with its content, but for what the worker writes of itself as time goes by, and the memory of calls, which ends. */
async function contents(): Promise<Record<string, string | undefined>> {
  const registry = Object.values(processKeys(redis.prefix));
  const keys = (await redis.admin.keys('*'))
    .filter((key) => !registry.includes(key) && !/:(worker|lane):/.test(key))
    .toSorted();
  const dumps = await Promise.all(keys.map((key) => redis.admin.dumpBuffer(key)));
  return Object.fromEntries(keys.map((key, i) => [key, dumps[i]?.toString('base64')]));
}

const scripts = async () =>
  Number(/number_of_cached_scripts:(\d+)/.exec(await redis.admin.info('memory'))![1]);

/** Refused in our words, before it has reached Redis. */
function expectTyped(error: unknown): void {
  expect(error).toBeInstanceOf(GodwitError);
  expect(error).not.toBeInstanceOf(RedisRefusedError);
  expect(error).not.toBeInstanceOf(RedisUnavailableError);
  const { message } = error as Error;
  expect(message.length).toBeLessThan(2_000);
  // oxlint-disable-next-line no-control-regex
  expect(message).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e]/);
}

const drained = () =>
  until(
    async () => {
      const { waiting, active } = await app.queue.counts();
      return waiting + active === 0;
    },
    { timeout: 15_000, what: 'everything has run' },
  );

interface Stored {
  readonly name: string;
  readonly json: string;
}

/** Notes the jobs that the queue must hold after these adds. Of several with one id, the first. */
function note(
  stored: Map<string, Stored>,
  outcome: PromiseSettledResult<any>,
  asked: { name: unknown; data: unknown; id: unknown },
): void {
  if (outcome.status === 'rejected') return expectTyped(outcome.reason);
  const { id, name, duplicate } = outcome.value as { id: string; name: string; duplicate: boolean };
  expect(name).toBe(asked.name);
  expect(asked.id ?? id).toBe(id);
  expect(duplicate).toBe(stored.has(id));
  if (!duplicate) stored.set(id, { name, json: JSON.stringify(asked.data) });
}

async function expectAllBack(stored: ReadonlyMap<string, Stored>): Promise<void> {
  await drained();
  expect(new Map([...runs].map(([id, { name, json }]) => [id, { name, json }]))).toEqual(new Map(stored));
  for (const [id, { times }] of runs) expect(times, id).toBe(1);
  for (const [id, { name, json }] of stored) {
    const job = (await app.queue.get(id))!;
    expect({ id: job.id, name: job.name, json: JSON.stringify(job.data), state: job.state }).toEqual({
      id,
      name,
      json,
      state: 'completed',
    });
  }
}

/** Data as a program has it at hand, most of it JSON. */
const data = () =>
  fc.oneof(
    { weight: 4, arbitrary: fc.jsonValue({ stringUnit: character }) },
    {
      weight: 2,
      arbitrary: fc.anything({
        withBigInt: true,
        withDate: true,
        withMap: true,
        withNullPrototype: true,
        withSparseArray: true,
        withTypedArray: true,
        withUnicodeString: true,
      } as never),
    },
    { weight: 1, arbitrary: text() },
    { weight: 1, arbitrary: fc.dictionary(text(), text(), { maxKeys: 5 }) },
  );

const STATEFUL = { isStateful: true };

describe('names, ids and data', () => {
  it(
    'come back byte by byte, or are refused',
    async () => {
      await boot();
      const stored = new Map<string, Stored>();
      const job = fc.record({
        name: maybeText(),
        data: data(),
        id: fc.option(maybeText(), { nil: undefined }),
      });
      await holds(
        fc.array(job, { minLength: 10, maxLength: 50 }),
        60,
        async (jobs) => {
          const asked = jobs.map(({ name, data: payload, id }) =>
            app.queue.add(name as string, payload, id === undefined ? undefined : { id: id as string }),
          );
          for (const [i, outcome] of (await Promise.allSettled(asked)).entries())
            note(stored, outcome, jobs[i]!);
        },
        STATEFUL,
      );
      expect(stored.size).toBeGreaterThan(100);
      await expectAllBack(stored);
    },
    patience(30_000),
  );

  it(
    'come back from a bulk, or the whole of it is refused and changes nothing',
    async () => {
      await boot();
      const stored = new Map<string, Stored>();
      const fine = fc.record({ name: text(), data: fc.jsonValue(), id: text() });
      await holds(
        fc.array(fine, { minLength: 1, maxLength: 4 }),
        150,
        async (jobs) => {
          const before = await bodyCount(redis);
          const entries = jobs.map(({ id, ...job }) => ({ ...job, options: { id } }));
          const [outcome] = await Promise.allSettled([app.queue.addBulk(entries)]);
          if (outcome.status === 'rejected') expectTyped(outcome.reason);
          const results = outcome.status === 'fulfilled' ? outcome.value : [];
          for (const [i, value] of results.entries()) note(stored, { status: 'fulfilled', value }, jobs[i]!);
          const added = results.filter(({ duplicate }) => !duplicate).length;
          expect(await bodyCount(redis)).toBe(before + added);
        },
        STATEFUL,
      );
      expect(stored.size).toBeGreaterThan(10);
      await expectAllBack(stored);
    },
    patience(30_000),
  );

  it('that no program should have are refused as data, name, id, options and entries of a bulk', async () => {
    await boot();
    const { queue, producer } = app;
    const untyped: string[] = [];
    for (const { what, make } of ODD) {
      const calls: [string, () => Promise<unknown>][] = [
        ['data', () => queue.add('job', make())],
        ['data of a field', () => queue.add('job', { field: make() })],
        ['name', () => queue.add(make() as string, 1)],
        ['id', () => queue.add('job', 1, { id: make() as string })],
        ['options', () => queue.add('job', 1, make() as JobOptions)],
        ['entry', () => queue.addBulk([make() as never])],
        ['bulk', () => queue.addBulk(make() as never)],
        ['queue', () => producer.add(make() as string, 'job', 1)],
        ['job to get', () => queue.get(make() as string)],
        ['options of a wait', () => queue.addAndWait('job', 1, make() as never)],
        ['since', async () => app.events.of('work', { since: make() as string })],
      ];
      for (const [as, call] of calls) {
        const outcome = await Promise.race([call(), drained().then(() => 'pending')]).then(
          (value) => ({ value }),
          (error: unknown) => ({ error }),
        );
        if ('error' in outcome && !(outcome.error instanceof GodwitError))
          untyped.push(`${what} as ${as}: ${String((outcome.error as Error)?.stack)}`);
      }
    }
    await drained();
    expect(untyped).toEqual([]);
  }, 30_000);
});

describe('options', () => {
  const odd = fc.oneof(
    fc.double(),
    fc.constantFrom(-1, -0, 1.5, 1e20, 2 ** 31, 2 ** 53, Number.NaN, Infinity),
    fc.constantFrom('-1s', '1e3', ' 5s', '99y', '5S', '', '1 s'),
    fc.anything(),
  );
  const mostly = (fine: fc.Arbitrary<unknown>) =>
    fc.oneof({ weight: 6, arbitrary: fine }, { weight: 1, arbitrary: odd });
  const time = mostly(
    fc.oneof(fc.nat({ max: 10_000_000 }), fc.constantFrom('1s', '10m', '250ms', '2h', '90d')),
  );
  const kind = mostly(fc.constantFrom('fixed', 'exponential'));
  const options = fc.record(
    {
      delay: time,
      runAt: mostly(fc.date({ noInvalidDate: false, min: new Date(0) })),
      priority: mostly(fc.nat({ max: 2_097_151 })),
      attempts: mostly(fc.integer({ min: 1, max: 1_000_000 })),
      backoff: mostly(
        fc.oneof(
          time,
          fc.array(time, { minLength: 1, maxLength: 3 }),
          fc.record({ type: kind, delay: time }),
        ),
      ),
      timeout: time,
      retention: time,
      expiresIn: time,
    },
    { requiredKeys: [] },
  );

  it(
    'hold as they were given, or are refused',
    async () => {
      await boot();
      let taken = 0;
      const unknown = fc.tuple(options, text(), odd).map(([all, key, value]) => ({ ...all, [key]: value }));
      const some = fc.oneof({ weight: 5, arbitrary: options }, { weight: 1, arbitrary: unknown });
      await holds(fc.array(some, { minLength: 20, maxLength: 50 }), 60, async (all) => {
        const asked = all.map((one) => app.queue.add('job', null, one as JobOptions));
        for (const [i, outcome] of (await Promise.allSettled(asked)).entries()) {
          if (outcome.status === 'rejected') {
            expectTyped(outcome.reason);
            continue;
          }
          taken += 1;
          const given = all[i] as { attempts?: number; delay?: number; retention?: number };
          const job = await app.queue.get(outcome.value.id);
          // Without retention it may have run and gone.
          if (job === null) continue;
          expect(job.attempts).toBe(given.attempts ?? 3);
          const isLate = typeof given.delay === 'number' && given.delay > 60_000;
          expect(isLate ? job.state : 'delayed').toBe('delayed');
        }
      });
      expect(taken).toBeGreaterThan(100 * TIMES);
      await drained();
    },
    patience(30_000),
  );
});

describe('acts on jobs', () => {
  it(
    'by any id find the job or report that there is none, and change nothing else',
    async () => {
      await boot();
      await app.queue.add('later', 1, { id: 'later', delay: '1h' });
      await app.queue.add('done', 1, { id: 'done' });
      await drained();
      // A bell that was rung meanwhile is a key until somebody takes it.
      await isBlocked(redis);
      const before = await contents();
      await holds(fc.array(maybeText(), { minLength: 20, maxLength: 40 }), 20, async (ids) => {
        for (const id of ids as string[]) {
          if (id === 'later' || id === 'done') continue;
          const { queue } = app;
          const acts: Promise<unknown>[] = [queue.get(id)];
          // An object is a filter.
          if (typeof id !== 'object' || id === null)
            acts.push(queue.remove(id), queue.promote(id), queue.dead.retry(id));
          for (const outcome of await Promise.allSettled(acts)) {
            if (outcome.status === 'rejected') expectTyped(outcome.reason);
            expect(outcome.status === 'fulfilled' ? outcome.value : null).toBeNull();
          }
        }
      });
      expect(await contents()).toEqual(before);
    },
    patience(30_000),
  );

  it('on events by any event number are answered or refused', async () => {
    await boot();
    await holds(maybeText(), 300, async (since) => {
      try {
        app.events
          .of('work', { since: since as string })
          .subscribe()
          .unsubscribe();
      } catch (error) {
        expectTyped(error);
      }
    });
    for (const since of ['0', '1', '9007199254740991'])
      expect(() => app.events.of('work', { since })).not.toThrow();
  });
});

it(
  '10,000 hostile calls leave no script, no key of another name and nothing in objects',
  async () => {
    await boot();
    // A worker may look after its leases at any moment.
    for (const { text: lua } of allScripts()) await redis.admin.script('LOAD', lua);
    const before = await scripts();
    let calls = 0;
    await holds(fc.array(fc.tuple(text(), text()), { minLength: 100, maxLength: 100 }), 50, async (pairs) => {
      const asked = pairs.flatMap(([name, id]) => [
        app.queue.add(name, { [name]: id }, { id }),
        app.queue.get(id),
      ]);
      calls += asked.length;
      for (const outcome of await Promise.allSettled(asked))
        if (outcome.status === 'rejected') expectTyped(outcome.reason);
    });
    expect(calls).toBeGreaterThanOrEqual(10_000);
    await drained();
    expect(await scripts()).toBe(before);
    const tag = `{${redis.prefix}:work}:`;
    const kinds =
      /^(jobs(:[A-Z])?|completed|results|events|meta|doorbell|workers|worker:[\w.-]+|active:[\w.-]+|lane:[\w-]+|stats:\d{4}-\d\d-\d\d)$/;
    const registry = Object.values(processKeys(redis.prefix));
    const stray = (await redis.admin.keys('*')).filter(
      (key) => !registry.includes(key) && (!key.startsWith(tag) || !kinds.test(key.slice(tag.length))),
    );
    expect(stray).toEqual([]);
  },
  patience(30_000),
);
