import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BootstrapError, GodwitError } from '#lib/errors.js';
import type { QueueModuleOptions, QueueOptions } from '#lib/options/module-options.js';
import type { ProcessorOptions } from '#lib/options/worker-options.js';
import { bootQueue, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { holds, patience } from './support/check.js';
import { ODD } from './support/hostile.js';
import { maybeText } from './support/texts.js';

const redis = useRedis();

/** Refused. Each fault is described in one line. */
function expectFaults(error: unknown): void {
  expect(error).toBeInstanceOf(GodwitError);
  const faults = error instanceof BootstrapError ? error.faults : [(error as Error).message];
  for (const fault of faults) {
    expect(fault.length).toBeLessThan(2_000);
    // oxlint-disable-next-line no-control-regex
    expect(fault).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e]/);
  }
}

it('queues may have any name of plain characters, also those that mean something elsewhere', async () => {
  const names = [
    '__proto__',
    'constructor',
    'toString',
    'then',
    'meta',
    'jobs',
    'events',
    '0',
    '-',
    '.',
    '..',
    'x'.repeat(128),
    'A',
    'a',
  ];
  const app = await bootQueue(redis, { queues: names.map((name) => ({ name })), watch: false });
  for (const name of names) await app.producer.add(name, 'job', { for: name }, { id: 'same' });
  for (const name of names) {
    expect(await app.queueOf(name).counts()).toMatchObject({ waiting: 1 });
    expect(await app.queueOf(name).get('same')).toMatchObject({ queue: name, data: { for: name } });
  }
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

it(
  'any other name of a queue is refused at the start, with nothing written',
  async () => {
    await holds(fc.array(maybeText(), { minLength: 20, maxLength: 20 }), 10, async (names) => {
      const wrong = names.filter((name) => typeof name !== 'string' || !/^[A-Za-z0-9._-]{1,128}$/.test(name));
      const queues = wrong.map((name) => ({ name })) as QueueOptions[];
      const [outcome] = await Promise.allSettled([bootQueue(redis, { queues, watch: false })]);
      if (outcome.status === 'fulfilled') await outcome.value.close();
      else expectFaults(outcome.reason);
      expect(outcome.status).toBe(wrong.length > 0 ? 'rejected' : 'fulfilled');
    });
    expect(await redis.keys()).toEqual([]);
  },
  patience(20_000),
);

const value = fc.oneof(
  fc.constantFrom(-1, 0, 1, 1.5, 1e20, 2 ** 31, Number.NaN, '1s', '-1s', '', 'x', true, null),
  maybeText(),
);
const fields = (names: readonly string[]) =>
  fc.dictionary(
    fc.constantFrom(...names),
    fc.oneof(
      value,
      fc.dictionary(
        fc.constantFrom(
          'max',
          'age',
          'duration',
          'maxBlock',
          'maxStalls',
          'timeout',
          'grace',
          'attempts',
          'backoff',
        ),
        value,
        { maxKeys: 2 },
      ),
    ),
    { minKeys: 1, maxKeys: 2 },
  );

it(
  'options of the module, of a queue and of a processor are taken or refused at the start',
  async () => {
    const plan = fc.record({
      root: fields([
        'prefix',
        'defaults',
        'role',
        'autoStart',
        'enqueueTimeout',
        'maxPayloadBytes',
        'lease',
        'shutdown',
        'events',
        'dead',
        'nonsense',
      ]),
      queue: fields(['defaults', 'events', 'dead', 'maxPayloadBytes', 'nonsense']),
      processor: fields(['concurrency', 'nonsense']),
    });
    let refused = 0;
    await holds(plan, 60, async ({ root, queue, processor }) => {
      try {
        // The prefix of the test, where none that would be taken is given: other prefixes are not ours.
        const prefix =
          typeof root['prefix'] === 'string' && /^[\w.-]{1,64}$/.test(root['prefix'])
            ? redis.prefix
            : root['prefix'];
        const given = { ...root, ...('prefix' in root && { prefix }) } as QueueModuleOptions;
        const providers = [processorOf('work', { '*': () => undefined }, processor as ProcessorOptions)];
        const app = await bootQueue(redis, {
          root: given,
          queue: queue as Partial<QueueOptions>,
          providers,
          watch: false,
        });
        await app.close();
      } catch (error) {
        refused += 1;
        expectFaults(error);
      }
    });
    expect(refused).toBeGreaterThan(20);
  },
  patience(30_000),
);

it('values that no program should have are refused as options of any kind', async () => {
  const untyped: string[] = [];
  for (const { what, make } of ODD) {
    const odd = make();
    for (const boot of [
      () => bootQueue(redis, { root: { lease: odd as never }, watch: false }),
      () => bootQueue(redis, { queue: { defaults: odd as never }, watch: false }),
    ]) {
      const error = await boot().then(
        (app) => app.close(),
        (thrown: unknown) => thrown,
      );
      if (error !== undefined && !(error instanceof GodwitError))
        untyped.push(`${what}: ${String((error as Error).stack)}`);
    }
  }
  expect(untyped).toEqual([]);
}, 30_000);
