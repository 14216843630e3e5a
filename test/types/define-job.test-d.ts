/** Checked by `tsc`, never run: every `@ts-expect-error` is a mistake that must not compile. */
import {
  defineJob,
  type AnyDefinition,
  type InputOf,
  type JobDefinition,
  type JobOf,
  type OutputOf,
  validatePayload,
} from '#lib/job/define-job.js';
import type { Job } from '#lib/job/job.js';
import { z } from 'zod';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function assert<T extends true>(_proof?: T): void {}

declare function add<Input>(definition: JobDefinition<Input, any, any>, data: NoInfer<Input>): void;
declare function handle<Output>(
  definition: JobDefinition<any, Output, any>,
  handler: (job: Job<Output>) => unknown,
): void;

// --- by type alone
const purge = defineJob<{ olderThan: string }>('email', 'purge');
assert<Equal<InputOf<typeof purge>, { olderThan: string }>>();
assert<Equal<JobOf<typeof purge>, Job<{ olderThan: string }>>>();

add(purge, { olderThan: '1d' });
// @ts-expect-error a property is missing
add(purge, {});
// @ts-expect-error a property has the wrong type
add(purge, { olderThan: 1 });
// @ts-expect-error an unknown property
add(purge, { olderThan: '1d', force: true });
// @ts-expect-error not optional
add(purge, undefined);

handle(purge, (job) => job.data.olderThan.length);
// @ts-expect-error no such property
handle(purge, (job) => job.data.newerThan);
// @ts-expect-error another payload
handle(purge, (job: Job<{ to: string }>) => job.data.to);

// --- by schema: input and output differ
const order = defineJob(
  'shop',
  'order',
  z.object({ id: z.string().transform(Number), note: z.string().default('') }),
);
assert<Equal<InputOf<typeof order>, { id: string; note?: string | undefined }>>();
assert<Equal<OutputOf<typeof order>, { id: number; note: string }>>();
assert<
  Equal<JobOf<typeof order>, Job<{ id: number; note: string }, { id: string; note?: string | undefined }>>
>();
declare const ordered: JobOf<typeof order>;
void ordered.update({ id: '6' });
// @ts-expect-error the new data is the input of the schema
void ordered.update(ordered.data);

add(order, { id: '5' });
// @ts-expect-error the input is text, the number is made of it
add(order, { id: 5 });
handle(order, (job) => job.data.id.toFixed() + job.data.note.trim());
// @ts-expect-error the handler receives a number
handle(order, (job: Job<{ id: string }>) => job.data.id);

const validated = validatePayload(order, {}, 'handler');
assert<Equal<typeof validated, { id: number; note: string } | Promise<{ id: number; note: string }>>>();

// --- without both: the handler must look at what it gets
const any = defineJob('email', 'any');
add(any, { whatever: 1 });
assert<Equal<JobOf<typeof any>, Job>>();
// @ts-expect-error unknown
handle(any, (job) => job.data.to);

// --- misuse
// @ts-expect-error not a schema
defineJob('email', 'x', { to: 'string' });
// @ts-expect-error a schema that may be missing
defineJob('email', 'x', undefined as z.ZodString | undefined);
// @ts-expect-error a name is missing
defineJob('email');
// @ts-expect-error names cannot be changed
purge.name = 'other';

// --- definitions of any kind fit where no payload is looked at
const all: readonly AnyDefinition[] = [purge, order, any];
void all;
