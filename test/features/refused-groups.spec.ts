import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { defineJob } from '#lib/job/define-job.js';
import { bootQueue } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';

const redis = useRedis();

describe('costs and groups that a queue refuses', () => {
  it('a cost is compared only with the rates that its job counts against', async () => {
    const rate = (max: number) => ({ rate: { max, per: '1h' } }) as const;
    const { queue, queueOf } = await bootQueue(redis, {
      root: { limits: { openai: rate(30) } },
      queue: { limits: { names: { small: rate(5), large: rate(20) } }, uses: ['openai'] },
      queues: [{ name: 'grouped', groups: rate(4) }],
      watch: false,
    });
    await queue.add('large', null, { cost: 20 });
    await queue.add('other', null, { cost: 30 });
    // It waits in the line of its group, where the rate of its name does not apply.
    await queue.add('small', null, { cost: 6, group: 'a' });
    const grouped = queueOf('grouped');
    await grouped.add('job', null, { cost: 100 });
    const refused: [Promise<unknown>, string][] = [
      [
        queue.add('small', null, { cost: 6 }),
        'cost must be at most 5, limits.names.small.rate.max of the queue',
      ],
      [
        queue.add('other', null, { cost: 31 }),
        'cost must be at most 30, limits.openai.rate.max of forRoot()',
      ],
      [
        grouped.add('job', null, { cost: 5, group: 'a' }),
        'cost must be at most 4, groups.rate.max of the queue',
      ],
      [
        queue.schedules.upsert('s', { every: '1h' }, { name: 'small', options: { cost: 6 } }),
        'schedules.upsert().template.options.cost must be at most 5, limits.names.small.rate.max',
      ],
    ];
    for (const [call, text] of refused) await expect(call).rejects.toThrow(text);
  });

  it('a group in the data is checked when the job is added, also by a schedule', async () => {
    const { queue } = await bootQueue(redis, { queue: { groups: { by: 'account.id' } }, watch: false });
    const rule =
      'must be a whole number or a string of 1 to 256 bytes without control characters: it is the group of the job (groups.by of the queue)';
    for (const id of [undefined, null, '', 1.5, 'a\nb', 'é'.repeat(129), {}])
      await expect(queue.add('job', id === undefined ? {} : { account: { id } })).rejects.toThrow(
        `add().data.account.id ${rule}`,
      );
    await expect(queue.addBulk([{ name: 'job', data: { account: 5 } }])).rejects.toThrow(
      `addBulk()[0].data.account.id ${rule}, got undefined`,
    );
    const every = (data: object) => queue.schedules.upsert('s', { every: '1h' }, { name: 'job', data });
    await expect(every({})).rejects.toThrow(`schedules.upsert().template.data.account.id ${rule}`);
    await every({ account: { id: 8 } });
    const { id } = await queue.schedules.runNow('s');
    expect(await queue.get(id)).toMatchObject({ group: '8' });
  });

  it('a job that collects data has no place in a strict order', async () => {
    const { queue, queueOf } = await bootQueue(redis, {
      queue: { groups: { order: 'strict' } },
      queues: [{ name: 'fair', groups: {} }],
      watch: false,
    });
    const options = { group: 'a', aggregate: { key: 'k', maxDelay: '1h' } } as const;
    await expect(queue.add('job', 1, options)).rejects.toThrow(
      /^add\(\)\.options\.aggregate must be left out in a queue whose groups have order 'strict': .*, got \{"key":"k","maxDelay":"1h"\} \(object\)$/,
    );
    await expect(queue.add('job', 1, { debounce: { key: 'k', delay: '5s' } })).rejects.toThrow(
      /^add\(\)\.options\.debounce must be .*, got \{"key":"k","delay":"5s"\} \(object\)$/,
    );
    expect((await queue.counts()).delayed).toBe(0);
    expect(await queueOf('fair').add('job', 1, options)).toMatchObject({ aggregated: { size: 1 } });
  });

  it('a priority has no place in a strict order, only in a job without a group', async () => {
    const { queue, queueOf } = await bootQueue(redis, {
      queue: { groups: { by: 'tenant', order: 'strict' } },
      queues: [{ name: 'plain', groups: { order: 'strict' } }],
      watch: false,
    });
    const rule =
      "priority must be left out of a job with a group whose order is 'strict', which is that of the adds, got 5";
    const template = { name: 'job', data: { tenant: 'a' }, options: { priority: 5 } };
    const { id } = await queue.add('job', { tenant: 'a' }, { priority: 0 });
    const refused: [Promise<unknown>, string][] = [
      [queue.add('job', { tenant: 'a' }, { priority: 5 }), 'add().options'],
      [queue.addBulk([template]), 'addBulk()[0].options'],
      [queue.schedules.upsert('s', { every: '1h' }, template), 'schedules.upsert().template.options'],
      [queue.update(id, { priority: 5 }), 'update().changes'],
    ];
    for (const [call, path] of refused) await expect(call).rejects.toThrow(`${path}.${rule}`);
    expect(await queue.update(id, { priority: 0 })).toMatchObject({ state: 'waiting' });
    expect((await queue.counts()).waiting).toBe(1);
    const plain = queueOf('plain');
    await expect(plain.add('job', null, { group: 'a', priority: 5 })).rejects.toThrow(rule);
    const alone = await plain.add('job', null, { priority: 5 });
    expect(await plain.update(alone.id, { priority: 4 })).toMatchObject({ state: 'waiting' });
  });

  it('a group that the schema of a handler does not have stops the start', async () => {
    const job = (schema: z.ZodType) => defineJob('work', 'job', schema);
    const boots = async (schema: z.ZodType, by: string) => {
      const definition = job(schema);
      @Processor('work')
      class Jobs {
        @Handle(definition)
        run() {}
      }
      return bootQueue(redis, { providers: [Jobs], queue: { groups: { by } }, watch: false }).then(
        () => [],
        (error: { faults?: string[] }) => error.faults,
      );
    };
    const account = z.object({ account: z.object({ id: z.string() }), at: z.iso.datetime() });
    expect(await boots(account, 'account.ID')).toEqual([
      "registerQueue('work').groups.by reads the group from the field 'account.ID' of the data, but the schema of job 'job' " +
        '(Jobs.run) has no such field; add it to the schema, or change groups.by',
    ]);
    expect(await boots(account, 'tenant')).toHaveLength(1);
    // These schemas have the field, or cannot tell.
    for (const schema of [
      account,
      z.looseObject({}),
      z.record(z.string(), z.any()),
      z.any(),
      z.object({ at: z.date() }),
    ])
      expect(await boots(schema, 'account.id')).toEqual([]);
  });
});
