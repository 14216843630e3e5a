import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import { InvalidOptionError } from '#lib/errors.js';
import { defineJob, type AnyDefinition } from '#lib/job/define-job.js';
import { bootQueue, type QueueApp } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { echoOf, errorOf, violationOf } from './typed-jobs-support.js';

const redis = useRedis();
const KEPT = { defaults: { retention: '1h' } };

const boot = (definition: AnyDefinition): Promise<QueueApp> =>
  bootQueue(redis, { providers: [echoOf(definition)], queue: KEPT });

describe('a definition on the handle of a queue', () => {
  const text = defineJob('sms', 'text', z.object({ to: z.string() }));

  it('of another queue is refused with a message', async () => {
    const { queue } = await bootQueue(redis, { queues: [{ name: 'sms' }] });
    const ways: [string, Promise<unknown>][] = [
      ['add()', queue.add(text, { to: 'ada' })],
      ['addBulk()', queue.addBulk(text, [{ data: { to: 'ada' } }])],
      ['addAndWait()', queue.addAndWait(text, { to: 'ada' })],
    ];
    for (const [path, way] of ways) {
      const error = await errorOf(way);
      expect(error).toBeInstanceOf(InvalidOptionError);
      expect(error.message).toBe(
        `${path}: job "text" is defined for queue 'sms', and this is the handle of queue 'work'; ` +
          'use the handle of that queue, or QueueProducer',
      );
    }
    expect(await queue.counts()).toMatchObject({ waiting: 0 });
  });

  it('that was tampered with is refused, by the handle and by the producer', async () => {
    const { queue, producer } = await bootQueue(redis);
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const hostile = {
      queue: 'work',
      get name(): string {
        throw new Error('gotcha');
      },
    };
    const cases: [unknown, string, RegExp][] = [
      [{ queue: 'a b', name: 'x' }, 'GODWIT_INVALID_QUEUE_NAME', /a queue name is .*got "a b"/],
      [{ queue: 'work', name: 'a\nb' }, 'GODWIT_INVALID_JOB_NAME', /U\+000A/],
      [{ queue: 'work', name: 7 }, 'GODWIT_INVALID_JOB_NAME', /is not a string/],
      [
        { queue: 'work', name: 'x', schema: null },
        'GODWIT_INVALID_OPTION',
        /must be a Standard Schema .*got null/,
      ],
      [
        { queue: 'work', name: 'x', schema: {} },
        'GODWIT_INVALID_OPTION',
        /must be a Standard Schema .*got \{\}/,
      ],
      [hostile, 'GODWIT_INVALID_OPTION', /^add\(\) must be a definition that can be read/],
      [null, 'GODWIT_INVALID', /got null|is not a string/],
      [revoked.proxy, 'GODWIT_INVALID', /is not a string|1 to 128 characters/],
    ];
    for (const [given, code, message] of cases) {
      for (const way of [queue.add(given as never, 1 as never), producer.add(given as never, 1 as never)]) {
        const error = await errorOf(way);
        expect(error.code).toContain(code);
        expect(error.message).toMatch(message);
      }
    }
    expect(await queue.counts()).toMatchObject({ waiting: 0 });
  });

  it('that was built without defineJob is read once, and its schema is used', async () => {
    const { queue } = await bootQueue(redis);
    const other = { queue: 'work', name: 'text', schema: z.object({ to: z.string() }) };
    expect(await queue.add(other as never, { to: 'ada' } as never)).toMatchObject({
      name: 'text',
      queue: 'work',
    });
    await violationOf(queue.add(other as never, { to: 7 } as never));
  });

  it('with an invalid schema stops the start of its handler', async () => {
    @Processor('work')
    class Wrong {
      @Handle({ queue: 'work', name: 'x', schema: class Dto {} } as never)
      run() {}
    }
    const error = await errorOf(bootQueue(redis, { providers: [Wrong] }));
    expect(error.message).toContain(
      `@Handle('x') on Wrong.run: the schema of defineJob('work', "x") must be a Standard Schema`,
    );
  });
});

describe('the message of a violation', () => {
  const many = defineJob('work', 'many', z.object({ list: z.array(z.string()) }));

  it('is short, whatever the number of issues, and the error has all of them', async () => {
    const { producer } = await boot(many);
    const list = Array.from({ length: 1_000 }, (_, i) => i);
    const error = await violationOf(producer.add(many, { list } as never));
    expect(error.issues.length).toBe(1_000);
    expect(error.message).toContain('list.9: ');
    expect(error.message).not.toContain('list.10: ');
    expect(error.message).toContain('; and 990 more; correct the data');
    expect(error.message.length).toBeLessThan(2_000);
  });

  it('is one line, whatever the schema returns', async () => {
    const loud = defineJob(
      'work',
      'loud',
      z.string().refine(() => false, `no\n2026 FORGED LINE ${'x'.repeat(500)}`),
    );
    const { producer } = await boot(loud);
    const error = await violationOf(producer.add(loud, 'x'));
    expect(error.message).toContain('no\\u000a2026 FORGED LINE xxx');
    expect(error.message.length).toBeLessThan(400);
    expect(error.issues[0]!.message).toContain('no\n2026');
  });
});

describe('a schema that fails', () => {
  const standard = (validate: (value: unknown) => unknown) =>
    defineJob('work', 'odd', { '~standard': { version: 1, vendor: 'test', validate } } as never);

  it('rejects the add with its error, and stores nothing', async () => {
    const odd = standard(() => {
      throw new RangeError('the lookup failed');
    });
    const { producer, queue } = await boot(odd);
    await expect(producer.add(odd, 1 as never)).rejects.toThrow(new RangeError('the lookup failed'));
    expect(await queue.counts()).toMatchObject({ waiting: 0 });
  });

  it('is retried if it fails before the handler, because the data may be correct', async () => {
    let asked = 0;
    const odd = standard((value) => {
      asked += 1;
      if (asked === 1) throw new RangeError('the lookup failed');
      return { value };
    });
    const { queue } = await bootQueue(redis, {
      providers: [echoOf(odd)],
      queue: { defaults: { retention: '1h', attempts: 2, backoff: 0 } },
    });
    expect(await queue.addAndWait('odd', 5)).toEqual({ data: 5, type: 'number' });
    expect(asked).toBe(2);
  });

  it.each([undefined, null, 'yes'])(
    'returns %j, and the error says what it should return',
    async (answer) => {
      const odd = standard(() => answer);
      const { producer } = await boot(odd);
      await expect(producer.add(odd, 1 as never)).rejects.toThrow(
        `the schema of defineJob('work', "odd") must be one that returns { value } or { issues }, got `,
      );
    },
  );
});
