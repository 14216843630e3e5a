import {
  InvalidJobNameError,
  InvalidOptionError,
  InvalidQueueNameError,
  SchemaViolationError,
} from '#lib/errors.js';
import { defineJob, type JobDefinition, validatePayload as validate } from '#lib/job/define-job.js';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { revoked } from '../support/caught.js';

const standard = (validate: (value: unknown) => unknown) =>
  ({ '~standard': { version: 1, vendor: 'test', validate } }) as never;

const validatePayload = <Output>(definition: JobDefinition<any, Output>, data: unknown) =>
  validate(definition, data, 'add');

const violationOf = async (run: () => unknown): Promise<SchemaViolationError> => {
  try {
    await run();
  } catch (error) {
    expect(error).toBeInstanceOf(SchemaViolationError);
    return error as SchemaViolationError;
  }
  throw new Error('was accepted');
};

describe('defineJob', () => {
  it('names queue and job, and cannot be changed', () => {
    const definition = defineJob<{ to: string }>('email', 'welcome');
    expect(definition).toEqual({ queue: 'email', name: 'welcome' });
    expect(Object.isFrozen(definition)).toBe(true);
  });

  it('keeps the schema', () => {
    const schema = z.object({ to: z.string() });
    const definition = defineJob('email', 'welcome', schema);
    expect(definition.schema).toBe(schema);
    expect(Object.isFrozen(definition)).toBe(true);
  });

  it('accepts a schema that is a function, such as those of arktype', () => {
    const schema = Object.assign(
      () => 0,
      standard((value) => ({ value })),
    );
    expect(defineJob('email', 'welcome', schema).schema).toBe(schema);
  });

  it('refuses wrong names', () => {
    expect(() => defineJob('e mail', 'welcome')).toThrow(InvalidQueueNameError);
    expect(() => defineJob('email', '')).toThrow(InvalidJobNameError);
    expect(() => defineJob('email', 'a\nb', z.string())).toThrow(
      'holds the control character U+000A at position 1',
    );
    expect(() => defineJob('email', undefined as never)).toThrow(InvalidJobNameError);
  });

  it.each([
    ['nothing, as from a circular import', undefined, 'got undefined'],
    ['null', null, 'got null (null)'],
    ['a plain object', { to: 'string' }, 'got {"to":"string"} (object)'],
    ['an object of zod before 3.24', { _def: {}, parse() {}, safeParse() {} }, 'got {"_def":{}} (object)'],
    ['an empty object', {}, 'got {} (object)'],
    ['a function', function validate() {}, 'got function validate'],
    ['a class', class Dto {}, 'got function Dto'],
    ['a revoked proxy', revoked(), 'got something that cannot be shown (object)'],
    ['another version', { '~standard': { version: 2, validate() {} } }, 'got {'],
    ['one that cannot validate', { '~standard': { version: 1 } }, 'got {'],
    ['a text', 'string', 'got "string" (string)'],
  ])('refuses a schema that is %s', (_, schema, got) => {
    const define = () => defineJob('email', 'welcome', schema as never);
    expect(define).toThrow(InvalidOptionError);
    expect(define).toThrow(
      `the schema of defineJob('email', "welcome") must be a Standard Schema (zod 3.24+, valibot 1+, arktype 2+ and others) or left out, ${got}`,
    );
  });
});

describe('validatePayload', () => {
  const order = defineJob(
    'shop',
    'order',
    z.object({
      id: z.coerce.number(),
      note: z.string().default('none'),
      items: z.array(z.object({ at: z.string() })).default([]),
    }),
  );

  it('returns the data itself if there is no schema', () => {
    const data = { to: 1 };
    expect(validatePayload(defineJob('email', 'welcome'), data)).toBe(data);
  });

  it('returns at once the value of the schema, with defaults and coercions applied', () => {
    expect(validatePayload(order, { id: '5', extra: true })).toEqual({ id: 5, note: 'none', items: [] });
  });

  it('throws every issue with its dotted path', async () => {
    const error = await violationOf(() => validatePayload(order, { id: 'x', items: [{ at: '' }, {}] }));
    expect(error.code).toBe('GODWIT_SCHEMA_VIOLATION');
    expect(error.issues.map(({ path }) => path)).toEqual(['id', 'items.1.at']);
    expect(error.message).toContain(
      "the data of job 'order' in queue 'shop' does not match its schema: id: ",
    );
    expect(error.message).toContain('; items.1.at: ');
  });

  it('throws at once if the schema is synchronous', () => {
    expect(() => validatePayload(order, null)).toThrow(SchemaViolationError);
  });

  it('reads paths of every kind', async () => {
    const path = ['a', 0, { key: 'b' }, Symbol('c'), { key: 1 }];
    const definition = defineJob(
      'q',
      'n',
      standard(() => ({ issues: [{ message: 'no', path }, { message: 'at all' }] })),
    );
    const error = await violationOf(() => validatePayload(definition, 1));
    expect(error.issues).toEqual([
      { message: 'no', path: 'a.0.b.Symbol(c).1' },
      { message: 'at all', path: '' },
    ]);
    expect(error.message).toContain('schema: a.0.b.Symbol(c).1: no; at all');
  });

  it('returns a promise if the schema is asynchronous', async () => {
    const slow = defineJob(
      'q',
      'n',
      z.string().refine(async (text) => text !== 'taken', 'is taken'),
    );
    // zod reports synchronous failures at once, so the test also uses a schema that always waits.
    const always = defineJob(
      'q',
      'n',
      standard(async (value) => (value === 1 ? { value: 2 } : { issues: [{ message: 'not 1' }] })),
    );
    const accepted = validatePayload(always, 1);
    expect(accepted).toBeInstanceOf(Promise);
    expect(await accepted).toBe(2);
    expect((await violationOf(() => validatePayload(always, 0))).message).toContain('not 1');
    expect(await validatePayload(slow, 'free')).toBe('free');
    expect((await violationOf(() => validatePayload(slow, 'taken'))).message).toContain('is taken');
  });
});
