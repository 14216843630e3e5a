import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { InjectQueue } from '#lib/decorators/inject-queue.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { JobFailedError } from '#lib/errors.js';
import { defineJob, type AnyDefinition, type JobOf } from '#lib/job/define-job.js';
import type { Queue } from '#lib/producer/queue.js';
import { bootQueue, PATIENT, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { echoOf, violationOf } from './typed-jobs-support.js';
import { countsOf } from '../support/queue-states.js';

const redis = useRedis();
const KEPT = { defaults: { retention: '1h', attempts: 5 } };

/** One job, as each library describes it: a number out of a text, a default, and something nested. */
const LIBRARIES = {
  zod: defineJob(
    'work',
    'order',
    z.object({
      cents: z.string().regex(/^\d+$/, 'is not a number').transform(Number),
      currency: z.string().default('EUR'),
      lines: z.array(z.object({ sku: z.string() })),
    }),
  ),
  valibot: defineJob(
    'work',
    'order',
    v.object({
      cents: v.pipe(v.string(), v.regex(/^\d+$/, 'is not a number'), v.transform(Number)),
      currency: v.optional(v.string(), 'EUR'),
      lines: v.array(v.object({ sku: v.string() })),
    }),
  ),
  arktype: defineJob(
    'work',
    'order',
    type({
      cents: 'string.integer.parse',
      currency: "string = 'EUR'",
      lines: type({ sku: 'string' }).array(),
    }),
  ),
} as const;
/** The same, with asynchronous checks: of a library that has them, or of a wrapper of the standard. */
const ASYNC = {
  zod: defineJob('work', 'sku', z.object({ sku: z.string().refine(known, 'is unknown') })),
  valibot: defineJob(
    'work',
    'sku',
    v.objectAsync({ sku: v.pipeAsync(v.string(), v.checkAsync(known, 'is unknown')) }),
  ),
  arktype: defineJob('work', 'sku', {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: async (value: unknown) => {
        const result = await type({ sku: 'string' })['~standard'].validate(value);
        if (result.issues || (await known(result.value.sku))) return result;
        return { issues: [{ message: 'is unknown', path: ['sku'] }] };
      },
      types: undefined as unknown as { input: { sku: string }; output: { sku: string } },
    },
  }),
} as const;

function known(sku: string): Promise<boolean> {
  return new Promise((resolve) => setImmediate(() => resolve(sku !== 'none')));
}

const boot = (definition: AnyDefinition): Promise<QueueApp> =>
  bootQueue(redis, { providers: [echoOf(definition)], queue: KEPT });

describe.each(Object.keys(LIBRARIES) as (keyof typeof LIBRARIES)[])('a schema of %s', (library) => {
  // The three have the same input and output, but different types.
  const order = LIBRARIES[library] as (typeof LIBRARIES)['zod'];
  const sku = ASYNC[library] as (typeof ASYNC)['zod'];
  const good = { cents: '990', lines: [{ sku: 'a' }] };
  const made = { data: { cents: 990, currency: 'EUR', lines: [{ sku: 'a' }] }, type: 'object' };
  const bad = { cents: 'many', lines: [{ sku: 'a' }, { sku: 7 }] } as never;

  it('gives the handler its defaults and coercions, applied once, however the job was added', async () => {
    const { producer, queue, ended } = await boot(order);
    expect(await producer.addAndWait(order, good)).toEqual(made);
    expect(await queue.addAndWait(order, good)).toEqual(made);
    const ids = [
      await producer.add(order, good),
      await queue.add(order, good),
      await queue.add('order', good),
      ...(await producer.addBulk(order, [{ data: good }, { data: good, options: { priority: 1 } }])),
      ...(await queue.addBulk(order, [{ data: good }])),
    ].map(({ id }) => id);
    expect(ids.length).toBe(6);
    for (const id of ids) {
      expect((await ended(id)).type).toBe('completed');
      expect(await queue.get(id)).toMatchObject({ data: good, result: made });
    }
  });

  it('refuses invalid data in every call that adds, with the nested paths, and adds nothing', async () => {
    const { producer, queue } = await boot(order);
    const ways = [
      () => producer.add(order, bad),
      () => queue.add(order, bad),
      () => producer.addAndWait(order, bad),
      () => queue.addAndWait(order, bad),
      () => producer.addBulk(order, [{ data: good }, { data: bad }]),
      () => queue.addBulk(order, [{ data: good }, { data: bad }]),
    ];
    for (const [at, way] of ways.entries()) {
      const error = await violationOf(way());
      expect(error).toMatchObject({ queue: 'work', jobName: 'order', side: 'add' });
      expect(error.issues.map(({ path }) => path)).toEqual(['cents', 'lines.1.sku']);
      expect(error.issues.every(({ message }) => message.length > 0)).toBe(true);
      const place = at < 4 ? '' : 'addBulk()[1]: ';
      expect(error.message.startsWith(`${place}the data of job 'order' in queue 'work' does not match`)).toBe(
        true,
      );
      expect(error.message).toMatch(
        /its schema: cents: .+; lines\.1\.sku: .+; correct the data, or the schema$/,
      );
    }
    expect(await queue.counts()).toEqual(countsOf());
  });

  it('makes a job dead at once if its stored data does not match the schema of the handler', async () => {
    const { queue, ended } = await boot(order);
    const { id } = await queue.add('order', bad);
    expect(await ended(id)).toMatchObject({ type: 'dead', attempt: 1, reason: 'unrecoverable' });
    const { failure } = (await queue.get(id))!;
    expect(failure).toMatchObject({ name: 'SchemaViolationError', attempt: 1, reason: 'unrecoverable' });
    expect(failure!.message).toMatch(
      /^the data of job 'order' in queue 'work' does not match the schema of its handler: cents: .+; lines\.1\.sku: /,
    );
    expect(failure!.message).toMatch(/added by name, or with another version .*retry the dead job$/);
    await expect(queue.addAndWait('order', bad)).rejects.toThrow(JobFailedError);
  });

  it('may be asynchronous, on both sides', async () => {
    const { producer, queue, ended } = await boot(sku);
    expect(await producer.addAndWait(sku, { sku: 'a' })).toEqual({ data: { sku: 'a' }, type: 'object' });
    const [first, second] = await queue.addBulk(sku, [{ data: { sku: 'a' } }, { data: { sku: 'b' } }]);
    await Promise.all([ended(first!.id), ended(second!.id)]);
    const error = await violationOf(producer.add(sku, { sku: 'none' }));
    expect(error.issues).toEqual([{ path: 'sku', message: 'is unknown' }]);
    const { id } = await queue.add('sku', { sku: 'none' });
    expect(await ended(id)).toMatchObject({ type: 'dead', reason: 'unrecoverable' });
    expect((await queue.get(id))!.failure!.message).toContain('schema of its handler: sku: is unknown;');
  });
});

const NOTHING: readonly (readonly [string, AnyDefinition, unknown])[] = [
  ['zod', defineJob('work', 'sweep', z.object({ days: z.number() }).default({ days: 7 })), { days: 7 }],
  [
    'valibot',
    defineJob('work', 'sweep', v.optional(v.object({ days: v.number() }), { days: 7 })),
    { days: 7 },
  ],
  [
    'arktype, by a pipe',
    defineJob(
      'work',
      'sweep',
      type('undefined').pipe(() => ({ days: 7 })),
    ),
    { days: 7 },
  ],
  ['zod, and has none', defineJob('work', 'sweep', z.undefined()), undefined],
];

describe('a job without data', () => {
  it.each(NOTHING)('gets the default of its schema: %s', async (_, sweep, data) => {
    const result = data === undefined ? { type: 'undefined' } : { data, type: 'object' };
    const { producer, queue, ended } = await boot(sweep);
    expect(await producer.addAndWait(sweep, undefined)).toEqual(result);
    const { id } = await queue.add(sweep, undefined, { delay: 5 });
    const [bulk] = await producer.addBulk(sweep, [{ data: undefined }]);
    for (const job of [id, bulk!.id]) {
      expect((await ended(job)).type).toBe('completed');
      const kept = (await queue.get(job))!;
      expect(kept).toMatchObject({ name: 'sweep', state: 'completed' });
      expect(kept.data).toBeUndefined();
      expect(kept.result).toEqual(result);
    }
  });

  it('still gets the default after a death and a retry, with its own options', async () => {
    const sweep = defineJob('work', 'sweep', z.object({ days: z.number() }).default({ days: 7 }));
    let fails = true;
    @Processor(sweep)
    class Sweeper {
      @Handle(sweep)
      sweep({ data }: JobOf<typeof sweep>) {
        if (fails) throw new Error('not yet');
        return data;
      }
    }
    const { queue, said } = await bootQueue(redis, { providers: [Sweeper], queue: KEPT });
    const { id } = await queue.add(sweep, undefined, { attempts: 1, expiresIn: '1h', priority: 3 });
    await said.first(({ type: kind }) => kind === 'dead', PATIENT);
    expect((await queue.dead.list()).jobs[0]).toMatchObject({ id, name: 'sweep', data: undefined });
    fails = false;
    await queue.dead.retry(id);
    await said.first(({ type: kind }) => kind === 'completed', PATIENT);
    expect((await queue.get(id))!.result).toEqual({ days: 7 });
  });

  it('is refused if the schema has no default, and if there is no schema', async () => {
    const order = LIBRARIES.zod;
    const bare = defineJob<undefined>('work', 'bare');
    const { producer, queue } = await boot(order);
    const error = await violationOf(producer.add(order, undefined as never));
    expect(error.issues).toMatchObject([{ path: '' }]);
    await expect(producer.add(bare, undefined)).rejects.toThrow(
      'add().data is undefined, which JSON cannot hold',
    );
    await expect(queue.add('order', undefined)).rejects.toThrow('add().data is undefined');
    expect(await queue.counts()).toMatchObject({ waiting: 0, completed: 0 });
  });
});

const when = new Date(Date.UTC(2030, 0, 2));
/** A schema that accepts a Date, and one that also accepts the text that JSON makes of it. */
const DATES = [
  ['zod', z.object({ at: z.date() }), z.object({ at: z.coerce.date() })],
  [
    'valibot',
    v.object({ at: v.date() }),
    v.object({
      at: v.pipe(
        v.union([v.date(), v.string()]),
        v.transform((at) => new Date(at)),
      ),
    }),
  ],
  ['arktype', type({ at: 'Date' }), type({ at: 'Date | string.date.parse' })],
] as const;

describe('data that JSON changes', () => {
  it.each(DATES)(
    'is refused with a message if the schema of the handler would refuse it: %s',
    async (_, strict) => {
      const remind = defineJob('work', 'remind', strict);
      const { producer, queue } = await boot(remind);
      const error = await violationOf(producer.add(remind, { at: when } as never));
      expect(error.side).toBe('json');
      expect(error.issues.map(({ path }) => path)).toEqual(['at']);
      expect(error.message).toMatch(
        /^the data of job 'remind' in queue 'work' matches its schema, but not after the JSON round trip that it makes on its way to the handler: at: /,
      );
      expect(error.message).toMatch(
        /let the schema accept the JSON form, such as the text of a date, and convert it/,
      );
      expect(await queue.counts()).toMatchObject({ waiting: 0 });
    },
  );

  it.each(DATES)('arrives as the schema returns it: %s', async (_, __, coercing) => {
    const remind = defineJob('work', 'remind', coercing);
    @Processor(remind)
    class Reminder {
      @Handle(remind)
      remind({ data }: JobOf<typeof remind>) {
        const { at } = data as { at: Date };
        return at instanceof Date ? at.getTime() : 'no date';
      }
    }
    const { producer, queue } = await bootQueue(redis, { providers: [Reminder], queue: KEPT });
    expect(await producer.addAndWait(remind, { at: when } as never, { id: 'r' })).toBe(when.getTime());
    expect((await queue.get('r'))!.data).toEqual({ at: when.toISOString() });
  });

  it('is reported by the issues of the original data if that does not match already', async () => {
    const remind = defineJob('work', 'remind', z.object({ at: z.date(), to: z.string() }));
    const { producer } = await boot(remind);
    const error = await violationOf(producer.add(remind, { at: when, to: 5 } as never));
    expect(error.side).toBe('add');
    expect(error.issues.map(({ path }) => path)).toEqual(['to']);
  });

  it('is refused with its path if JSON cannot represent it, although the schema could', async () => {
    const count = defineJob('work', 'count', z.object({ n: z.bigint(), tags: z.set(z.string()).optional() }));
    const { producer } = await boot(count);
    await expect(producer.add(count, { n: 1n })).rejects.toThrow(
      'add().data.n is a BigInt, which JSON cannot hold',
    );
  });
});

describe('Queue<Jobs>', () => {
  const Jobs = {
    welcome: defineJob('work', 'welcome', z.object({ to: z.string(), copies: z.number().default(1) })),
    render: defineJob<{ url: string }, 'render'>('work', 'render').returns<{ pdf: string }>(),
  };

  @Processor('work')
  class Work {
    constructor(@InjectQueue('work') readonly queue: Queue<typeof Jobs>) {}

    @Handle(Jobs.welcome)
    welcome({ data }: JobOf<typeof Jobs.welcome>) {
      return data.copies;
    }

    @Handle(Jobs.render)
    render({ data }: JobOf<typeof Jobs.render>) {
      return { pdf: `${data.url}.pdf` };
    }
  }

  it('is the usual handle, with names, data and results that the compiler checks', async () => {
    const { get, queue } = await bootQueue(redis, { providers: [Work], queue: KEPT });
    const { queue: typed } = get(Work);
    expect(typed).toBe(queue);
    const { pdf } = await typed.addAndWait('render', { url: 'a' });
    expect(pdf).toBe('a.pdf');
    expect(await typed.addAndWait(Jobs.welcome, { to: 'ada' })).toBe(1);
    const [job] = await typed.addBulk([{ name: 'welcome', data: { to: 'ada' }, options: { delay: '1h' } }]);
    const found = await typed.get(job!.id);
    if (found?.name !== 'welcome') throw new Error(`it is ${found?.name}`);
    expect(found.data?.to).toBe('ada');
  });
});
