/** Checked by `tsc`, never run: every `@ts-expect-error` is a mistake that must not compile. */
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import { defineJob, type Queue, type QueueProducer } from '#lib/index.js';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function assert<T extends true>(_proof?: T): void {}

interface Mail {
  to: string;
}

// --- types of data by name, as a type or as an interface
interface EmailData {
  welcome: Mail;
  digest: { week: number };
}
declare const byData: Queue<{ welcome: Mail; digest: { week: number } }>;
declare const byInterface: Queue<EmailData>;

export async function namesAndData() {
  await byData.add('welcome', { to: 'ada' });
  await byInterface.add('digest', { week: 3 }, { delay: '1h' });
  // @ts-expect-error no such job
  await byData.add('welcom', { to: 'ada' });
  // @ts-expect-error a field is missing
  await byData.add('welcome', {});
  // @ts-expect-error the data of another job
  await byData.add('digest', { to: 'ada' });
  // @ts-expect-error a field has another type
  await byInterface.add('digest', { week: '3' });
  // @ts-expect-error an unknown field
  await byData.add('welcome', { to: 'ada', cc: 'bob' });
  // @ts-expect-error no data
  await byData.add('welcome');
  // @ts-expect-error no such option
  await byData.add('welcome', { to: 'ada' }, { dealy: '1h' });

  await byData.addBulk([
    { name: 'welcome', data: { to: 'ada' } },
    { name: 'digest', data: { week: 3 }, options: { priority: 1 } },
  ]);
  // @ts-expect-error no such job
  await byData.addBulk([{ name: 'welcom', data: { to: 'ada' } }]);
  // @ts-expect-error the data of another job
  await byData.addBulk([{ name: 'welcome', data: { week: 3 } }]);

  assert<Equal<Awaited<ReturnType<typeof byData.isPaused>>, boolean>>();
  const answer = await byData.addAndWait('welcome', { to: 'ada' });
  assert<Equal<typeof answer, unknown>>();
  const said = await byData.addAndWait<{ sent: boolean }>('welcome', { to: 'ada' });
  assert<Equal<typeof said, { sent: boolean }>>();
  const text = await byData.addAndWait<string>('welcome', { to: 'ada' });
  assert<Equal<typeof text, string>>();
  // @ts-expect-error no such job
  await byData.addAndWait('welcom', { to: 'ada' });
  // @ts-expect-error the data of another job
  await byData.addAndWait('welcome', { week: 3 });
}

export async function looking() {
  const job = await byData.get('1');
  if (job?.name === 'welcome') assert<Equal<typeof job.data, Mail | undefined>>();
  if (job?.name === 'digest') job.data?.week.toFixed();
  // @ts-expect-error no such job
  if (job?.name === 'digset') return;
  const own = await byData.get<{ other: true }>('1');
  assert<Equal<NonNullable<typeof own>['data'], { other: true } | undefined>>();

  const { jobs } = await byData.dead.list({ name: 'digest', reason: 'expired' });
  for (const dead of jobs) if (dead.name === 'digest') dead.data?.week.toFixed();
  // @ts-expect-error no such job
  await byData.dead.list({ name: 'digset' });
  // @ts-expect-error no such job
  await byData.dead.retry({ name: 'digset' });
  const other = await byData.dead.list<{ other: true }>();
  assert<Equal<NonNullable<(typeof other)['jobs'][number]['data']>, { other: true }>>();

  await byData.schedules.upsert('weekly', { every: '7d' }, { name: 'digest', data: { week: 1 } });
  // @ts-expect-error no such job
  await byData.schedules.upsert('weekly', { every: '7d' }, { name: 'digset', data: { week: 1 } });
  // @ts-expect-error the data of another job
  await byData.schedules.upsert('weekly', { every: '7d' }, { name: 'digest', data: { to: 'ada' } });
  // @ts-expect-error without data the handler would get null
  await byData.schedules.upsert('weekly', { every: '7d' }, { name: 'digest' });
}

// --- definitions, as an object or a tuple; input and output differ
export const EmailJobs = {
  greeting: defineJob('email', 'welcome', z.object({ to: z.string(), copies: z.number().default(1) })),
  digest: defineJob('email', 'digest', v.object({ at: v.pipe(v.string(), v.transform(Number)) })),
  ping: defineJob('email', 'ping', type({ host: 'string', 'port?': 'number' })),
  purge: defineJob<{ olderThan: string }, 'purge'>('email', 'purge').returns<{ purged: number }>(),
  unnamed: defineJob<{ olderThan: string }>('email', 'sweep'),
};
const tuple = [EmailJobs.greeting, EmailJobs.digest] as const;
declare const emails: Queue<typeof EmailJobs>;
declare const listed: Queue<typeof tuple>;
declare const untyped: Queue;
declare const producer: QueueProducer;
const sms = defineJob('sms', 'text', z.object({ to: z.string() }));

export async function definitions() {
  await emails.add('welcome', { to: 'ada' });
  await emails.add('digest', { at: '5' });
  await emails.add('ping', { host: 'a' });
  await emails.add('purge', { olderThan: '1d' });
  // @ts-expect-error by the names of the jobs, not by the keys of the object
  await emails.add('greeting', { to: 'ada' });
  // @ts-expect-error the compiler does not know the name of this one; give the definition
  await emails.add('sweep', { olderThan: '1d' });
  // @ts-expect-error the schema makes the number
  await emails.add('digest', { at: 5 });
  // @ts-expect-error a field has another type
  await emails.add('ping', { host: 'a', port: '80' });

  await emails.add(EmailJobs.greeting, { to: 'ada' }, { attempts: 1 });
  await emails.add(EmailJobs.unnamed, { olderThan: '1d' });
  await emails.addBulk(EmailJobs.greeting, [{ data: { to: 'ada' } }, { data: { to: 'b', copies: 2 } }]);
  // @ts-expect-error a field is missing
  await emails.add(EmailJobs.greeting, {});
  // @ts-expect-error not among the jobs of this queue
  await emails.add(sms, { to: 'ada' });
  // @ts-expect-error a field has another type
  await emails.addBulk(EmailJobs.greeting, [{ data: { to: 5 } }]);
  // @ts-expect-error not among the jobs of this queue
  await emails.addBulk(sms, [{ data: { to: 'ada' } }]);

  const byDefinition = await emails.addAndWait(EmailJobs.purge, { olderThan: '1d' }, { waitTimeout: '1s' });
  const byName = await emails.addAndWait('purge', { olderThan: '1d' });
  // @ts-expect-error the definition says what it returns
  const other: { html: string } = await emails.addAndWait('purge', { olderThan: '1d' });
  void other;
  const byProducer = await producer.addAndWait(EmailJobs.purge, { olderThan: '1d' });
  assert<Equal<typeof byDefinition, { purged: number }>>();
  assert<Equal<typeof byName, { purged: number }>>();
  assert<Equal<typeof byProducer, { purged: number }>>();
  // @ts-expect-error what it returns is said by its definition, and its data would be unchecked
  await producer.addAndWait<{ purged: number }>(EmailJobs.purge, { newerThan: '1d' });
  // @ts-expect-error the same of a handle
  await emails.addAndWait<{ purged: string }>(EmailJobs.purge, { olderThan: '1d' });

  await listed.add('welcome', { to: 'ada' });
  await listed.add(EmailJobs.digest, { at: '5' });
  // @ts-expect-error not among them
  await listed.add('ping', { host: 'a' });
  const { jobs } = await listed.dead.list();
  for (const dead of jobs)
    if (dead.name === 'digest') assert<Equal<typeof dead.data, { at: string } | undefined>>();
}

// --- a queue of which nothing is said takes all of them
export async function anything() {
  await untyped.add('whatever', { any: 1 });
  await untyped.add('whatever', undefined);
  await untyped.add(sms, { to: 'ada' });
  // @ts-expect-error its definition says what it is
  await untyped.add(sms, { to: 5 });
  await untyped.addBulk([{ name: 'whatever', data: 1 }]);
  const result = await untyped.addAndWait<{ pdf: string }>('render', { url: '' });
  result.pdf.trim();
  const text = await untyped.addAndWait<string>('render', { url: '' });
  assert<Equal<typeof text, string>>();
  const job = await untyped.get('1');
  assert<Equal<NonNullable<typeof job>['data'], unknown>>();
  await untyped.schedules.upsert('daily', { every: '1d' }, { name: 'report' });
  // @ts-expect-error a job has a name
  await untyped.add({ to: 'ada' }, {});
}

// --- one handle fits where another is wanted
declare function tidy(queue: Queue): void;
tidy(untyped);
tidy(byData);
tidy(byInterface);
tidy(emails);
tidy(listed);
export const typedAgain: Queue<typeof EmailJobs> = untyped;
export const mixed = (_: Queue<{ anything: any; nothing: undefined }>) => {
  void _.add('anything', { a: 1 });
  void _.add('nothing', undefined);
  // @ts-expect-error it takes none
  void _.add('nothing', 1);
};

// --- undefined where the schema has a default for it
const sweep = defineJob('email', 'sweep', z.object({ days: z.number() }).default({ days: 1 }));
void producer.add(sweep, undefined);
void untyped.add(sweep, undefined, { delay: '1h' });
// @ts-expect-error there is none
void producer.add(sms, undefined);
