import { z } from 'zod';
import { defineJob } from '#lib/job/define-job.js';
import { QueueInspector } from '#lib/inspect/queue-inspector.js';
import type { QueueApp } from '../support/queue-app.js';

const welcome = defineJob('work', 'welcome', z.object({ to: z.email(), times: z.number().max(3) }));

type Call = (app: QueueApp) => Promise<unknown>;
/** The fault, the code of the error, a part of its message or its shape, and the call. */
export type Case = [what: string, code: string, message: string | RegExp, call: Call];

const add =
  (data: unknown, options?: unknown): Call =>
  ({ queue }) =>
    queue.add('job', data, options as never);
export const withOptions = (options: unknown): Call => add(1, options);
const withId = (id: unknown): Call => withOptions({ id });
const named =
  (name: unknown): Call =>
  ({ queue }) =>
    queue.add(name as string, 1);
const to =
  (queue: unknown): Call =>
  ({ producer }) =>
    producer.add(queue as string, 'job', 1);

const circular: Record<string, unknown> = { a: {} };
circular['a'] = { back: circular };
const deep = () => {
  let data: unknown = 1;
  for (let i = 0; i < 1001; i++) data = [data];
  return data;
};

const holed: unknown[] = [];
holed[1] = 1;

export const OPTION = 'GODWIT_INVALID_OPTION';
const PAYLOAD = 'GODWIT_INVALID_PAYLOAD';
const ID = 'GODWIT_INVALID_JOB_ID';
export const NAME = 'GODWIT_INVALID_JOB_NAME';
const QUEUE = 'GODWIT_INVALID_QUEUE_NAME';

/** Every call that is wrong by itself. The queue `work` accepts data of up to 1,000 bytes. */
export const cases: Case[] = [
  [
    'an unknown queue',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not registered; add QueueModule.registerQueue({ name: 'nowhere' }) to a module (registered: work)",
    to('nowhere'),
  ],
  [
    'an unknown queue of a definition',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not",
    ({ producer }) => producer.add(defineJob('nowhere', 'x'), 1),
  ],
  [
    'an unknown queue for a bulk',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not",
    ({ producer }) => producer.addBulk('nowhere', []),
  ],
  ...(
    [
      ['obliterate', 'forse', 'force', ({ queue }) => queue.obliterate({ forse: true } as never)],
      ['schedules.list', 'limmit', 'limit', ({ queue }) => queue.schedules.list({ limmit: 5 } as never)],
      ['of', 'sinse', 'since', async ({ events }) => events.of('work', { sinse: '0' } as never)],
      ['forJob', 'sinse', 'since', async ({ events }) => events.forJob('work', 'a', { sinse: '0' } as never)],
      ['stats', 'day', 'days', ({ queue }) => queue.stats({ day: 5 } as never)],
      ['remove', 'sate', 'state', ({ queue }) => queue.remove({ sate: 'dead' } as never)],
      ['dead.list', 'resaon', 'reason', ({ queue }) => queue.dead.list({ resaon: 'stalled' } as never)],
    ] satisfies [string, string, string, Call][]
  ).map(([place, given, meant, call]): Case => [
    `a misspelt option of ${place}`,
    OPTION,
    `${place}().${given} is not an option; did you mean ${meant}?`,
    call,
  ]),
  [
    'an option that is not true or false',
    OPTION,
    'obliterate().force must be true or false',
    ({ queue }) => queue.obliterate({ force: 'yes' } as never),
  ],
  [
    'one queue where a list is needed',
    OPTION,
    'queues() must be a list of names of queues',
    ({ get }) => get(QueueInspector).queues('work' as never),
  ],
  [
    'a series that ends before it begins',
    OPTION,
    'series().from must be before `to`',
    ({ get }) => get(QueueInspector).series('work', { from: 2, to: 1 }),
  ],
  [
    'a series in steps of half minutes',
    OPTION,
    'series().step must be a duration in whole minutes, got 90000',
    ({ get }) => get(QueueInspector).series('work', { step: '90s' }),
  ],
  [
    'a series of too many steps',
    OPTION,
    'series().step must be long enough for at most 4320 steps',
    ({ get }) => get(QueueInspector).series('work', { from: 0, step: '1m' }),
  ],
  [
    'a misspelt option of a series',
    OPTION,
    /series\(\).*steps/,
    ({ get }) => get(QueueInspector).series('work', { steps: 1 } as never),
  ],
  [
    'a misspelt field of an entry',
    OPTION,
    'addBulk()[1].opts is not an option; use the field options for the options of a job',
    ({ queue }) =>
      queue.addBulk([{ name: 'a', data: 1 }, { name: 'a', data: 1, opts: { delay: 5 } } as never]),
  ],
  [
    'an unknown field of an item of a definition',
    OPTION,
    'addBulk()[0].name is not an option; the options are data, options',
    ({ queue }) => queue.addBulk(welcome, [{ name: 'a', data: { to: 'a@b.cd', times: 1 } } as never]),
  ],
  [
    'a misspelt option on a prototype',
    OPTION,
    'add().options.dealy is not an option; did you mean delay?',
    withOptions(Object.create({ dealy: 5 })),
  ],
  [
    'options that are a promise',
    OPTION,
    'add().options must be an object',
    withOptions(Promise.resolve({ delay: 5 })),
  ],
  [
    'an unknown queue to wait for',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not",
    ({ producer }) => producer.addAndWait('nowhere', 'x', 1),
  ],
  [
    'an unknown queue to listen to',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not",
    async ({ events }) => events.of('nowhere'),
  ],
  [
    'an unknown queue to pause',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not",
    async ({ runtime }) => runtime.pause('nowhere'),
  ],
  [
    'an unknown queue to make quiet',
    'GODWIT_UNKNOWN_QUEUE',
    "queue 'nowhere' is not",
    async ({ runtime }) => runtime.quiet('nowhere'),
  ],
  [
    'a queue name that no queue can have',
    QUEUE,
    'a queue name is 1 to 128 characters out of A-Z a-z 0-9 . _ -, got "a b" (string)',
    to('a b'),
  ],
  ['an empty queue name', QUEUE, 'got "" (string)', to('')],
  ['a queue name that is too long', QUEUE, /got "x{100,}\.\.\. \(string\)$/, to('x'.repeat(129))],
  ['no queue name', QUEUE, 'got undefined', to(undefined)],
  ['null as the queue name', QUEUE, 'got null (null)', to(null)],
  [
    'a queue name that would forge a line of a log',
    QUEUE,
    String.raw`got "a\nERROR" (string)`,
    to('a\nERROR'),
  ],

  [
    'an empty id',
    ID,
    'a job id is 1 to 255 bytes of well-formed text without control characters: "" (string) is empty',
    withId(''),
  ],
  ['an id of 256 bytes', ID, 'is 256 bytes long', withId('é'.repeat(128))],
  [
    'an id with a control character',
    ID,
    String.raw`"a\nb" (string) holds the control character U+000A at position 1`,
    withId('a\nb'),
  ],
  ['an id with a NUL', ID, 'U+0000 at position 0', withId('\0')],
  ['an id with a C1 control character', ID, 'U+009B at position 0', withId('\u009b')],
  ['an id with a lone surrogate', ID, 'holds the lone surrogate U+D800 at position 1', withId('a\ud800')],
  ['an id that is a number', ID, '42 (number) is not a string', withId(42)],
  ['a wrong id to look up', ID, 'is empty', ({ queue }) => queue.get('')],
  ['a wrong id to remove', ID, 'U+000A', ({ queue }) => queue.remove('a\nb')],
  ['a wrong id to promote', ID, 'is not a string', ({ queue }) => queue.promote(undefined as never)],
  ['a wrong id to cancel', ID, 'U+000A', ({ queue }) => queue.cancel('a\nb', 'why')],
  [
    'an empty reason to cancel',
    OPTION,
    'cancel().reason must be 1 to 1000 bytes of well-formed text without control characters, got "" (string)',
    ({ queue }) => queue.cancel('a', ''),
  ],
  ['a reason of two lines', OPTION, 'cancel().reason must be', ({ queue }) => queue.cancel('a', 'one\ntwo')],
  [
    'a reason that is too long',
    OPTION,
    'cancel().reason must be',
    ({ queue }) => queue.cancel('a', 'é'.repeat(501)),
  ],
  ['a reason with a lone surrogate', OPTION, 'cancel().reason', ({ queue }) => queue.cancel('a', '\udc00')],
  ['null as the reason', OPTION, 'got null (null)', ({ queue }) => queue.cancel('a', null as never)],
  ['an object as the reason', OPTION, 'got {} (object)', ({ queue }) => queue.cancel('a', {} as never)],
  [
    'no days to count',
    OPTION,
    'stats().days must be an integer from 1 to 90, got 0 (number)',
    ({ queue }) => queue.stats({ days: 0 }),
  ],
  ['more days than are kept', OPTION, 'got 91 (number)', ({ queue }) => queue.stats({ days: 91 })],
  ['half a day', OPTION, 'got 0.5 (number)', ({ queue }) => queue.stats({ days: 0.5 })],
  ['days as text', OPTION, 'got "7" (string)', ({ queue }) => queue.stats({ days: '7' as never })],
  ['null for the options of stats', OPTION, 'stats() must be', ({ queue }) => queue.stats(null as never)],
  [
    'an option that stats does not have',
    OPTION,
    /stats\(\).*day/,
    ({ queue }) => queue.stats({ day: 1 } as never),
  ],
  ['a wrong id to retry', ID, 'U+D800', ({ queue }) => queue.dead.retry('\ud800')],
  ['an empty job name', NAME, 'a job name is 1 to 255 bytes', named('')],
  ['a job name with a line break', NAME, 'U+000A at position 1', named('a\nb')],
  ['no job name', NAME, 'undefined is not a string', named(undefined)],

  ['undefined as data', PAYLOAD, 'add().data is undefined, which JSON cannot hold', add(undefined)],
  ['a function', PAYLOAD, 'add().data is a function', add(() => 1)],
  ['a function inside', PAYLOAD, 'add().data.items[1].run is a function', add({ items: [0, { run() {} }] })],
  ['a BigInt', PAYLOAD, 'add().data["the total"] is a BigInt', add({ 'the total': 1n })],
  ['a symbol', PAYLOAD, 'add().data[0] is a symbol', add([Symbol('s')])],
  ['a circle', PAYLOAD, 'add().data.a.back is a circular reference', add(circular)],
  ['NaN', PAYLOAD, 'add().data.n is NaN', add({ n: Number.NaN })],
  ['Infinity', PAYLOAD, 'add().data is Infinity', add(Infinity)],
  ['undefined in a list', PAYLOAD, 'add().data[1] is undefined', add([1, undefined])],
  ['a hole in a list', PAYLOAD, 'add().data[0] is a hole in an array', add(holed)],
  ['a Map', PAYLOAD, 'add().data is a Map', add(new Map())],
  ['an invalid Date', PAYLOAD, 'add().data.at is an invalid Date', add({ at: new Date('x') })],
  ['an Error', PAYLOAD, 'add().data is an Error', add(new Error('x'))],
  ['data nested too deep', PAYLOAD, 'is nested deeper than 1,000 levels', add(deep())],
  [
    'data that is too large',
    'GODWIT_PAYLOAD_TOO_LARGE',
    'the data of the job takes 1002 bytes, more than maxPayloadBytes (1000)',
    add('x'.repeat(1000)),
  ],
  [
    'data that is too large in bytes only',
    'GODWIT_PAYLOAD_TOO_LARGE',
    'takes 1202 bytes',
    add('é'.repeat(600)),
  ],
  [
    'data that is far too large',
    'GODWIT_PAYLOAD_TOO_LARGE',
    /takes at least \d+ bytes/,
    add(Array.from({ length: 10_000 }).fill('text')),
  ],

  [
    'a negative delay',
    OPTION,
    'add().options.delay must be a duration in ms or like \'10s\', not negative, got "-1s" (string)',
    withOptions({ delay: '-1s' }),
  ],
  [
    'a NaN delay',
    OPTION,
    "add().options.delay must be a duration in ms or like '10s', got NaN (number)",
    withOptions({ delay: Number.NaN }),
  ],
  ['a delay with a fraction', OPTION, 'in whole milliseconds, got 1.5 (number)', withOptions({ delay: 1.5 })],
  ['a delay without end', OPTION, 'at most 10 years', withOptions({ delay: Infinity })],
  [
    'a delay that does not parse',
    OPTION,
    `add().options.delay must be a duration in ms or like '10s', got "soon" (string)`,
    withOptions({ delay: 'soon' }),
  ],
  ['an empty delay', OPTION, 'got "" (string)', withOptions({ delay: '' })],
  ['a delay of a thousand years', OPTION, 'at most 10 years', withOptions({ delay: '1000y' })],
  [
    'runAt that is no date',
    OPTION,
    'add().options.runAt must be a valid Date or whole ms since 1970',
    withOptions({ runAt: new Date('x') }),
  ],
  ['runAt before 1970', OPTION, 'add().options.runAt must be', withOptions({ runAt: -1 })],
  [
    'runAt with delay',
    OPTION,
    'add().options.runAt must be left out if delay is given',
    withOptions({ runAt: 1, delay: 1 }),
  ],
  [
    'negative attempts',
    OPTION,
    'add().options.attempts must be an integer from 1 to 9007199254740991, got -1 (number)',
    withOptions({ attempts: -1 }),
  ],
  ['no attempts', OPTION, 'got 0 (number)', withOptions({ attempts: 0 })],
  ['NaN attempts', OPTION, 'got NaN (number)', withOptions({ attempts: Number.NaN })],
  ['half an attempt', OPTION, 'got 1.5 (number)', withOptions({ attempts: 1.5 })],
  ['attempts as text', OPTION, 'got "3" (string)', withOptions({ attempts: '3' })],
  [
    'a negative priority',
    OPTION,
    'add().options.priority must be an integer from 0 to 2097151',
    withOptions({ priority: -1 }),
  ],
  [
    'a key that is missing',
    OPTION,
    'unique.key must be given, or the option by',
    withOptions({ unique: {} }),
  ],
  [
    'two ways to say a key',
    OPTION,
    'unique.by must be left out if key is given',
    withOptions({ unique: { key: 'k', by: ['a'] } }),
  ],
  [
    'a key that is too long',
    OPTION,
    'unique.key must be a string of 1 to 256 bytes without control characters',
    withOptions({ unique: { key: 'x'.repeat(257) } }),
  ],
  [
    'a key with a line break',
    OPTION,
    'debounce.key must be a string of 1 to 256 bytes without control characters',
    withOptions({ debounce: { key: 'a\nb', delay: 1 } }),
  ],
  [
    'a key of a field that is not in the data',
    OPTION,
    'add().options.unique.by[1] must be a field of the data, but the data has no "b.c"',
    add({ a: 1, b: {} }, { unique: { by: ['a', 'b.c'] } }),
  ],
  ['a list of no fields', OPTION, 'unique.by must be a list of 1 to 10', withOptions({ unique: { by: [] } })],
  [
    'a key for a time, and states',
    OPTION,
    'unique.states must be left out if until is given',
    withOptions({ unique: { key: 'k', until: '1m', states: ['dead'] } }),
  ],
  [
    'the time of another method',
    OPTION,
    'add().options.waitTimeout is not an option; it is an option of addAndWait()',
    withOptions({ waitTimeout: '1s' } as never),
  ],
  [
    'a key until a state that does not exist',
    OPTION,
    "unique.until must be 'started', 'settled', or a duration from 1 ms, got \"completed\" (string)",
    withOptions({ unique: { key: 'k', until: 'completed' as never } }),
  ],
  [
    'the last of those that are started',
    OPTION,
    "unique.until must be 'settled' if onDuplicate is 'keepLast'",
    withOptions({ unique: { key: 'k', until: 'started', onDuplicate: 'keepLast' } }),
  ],
  [
    'a key and an id',
    OPTION,
    'add().options.unique must be left out if id is given',
    withOptions({ id: 'a', unique: { key: 'k' } }),
  ],
  [
    'a debounce and a delay',
    OPTION,
    'add().options.debounce must be left out if delay is given',
    withOptions({ delay: 5, debounce: { key: 'k', delay: 5 } }),
  ],
  [
    'a debounce that waits for less than its delay',
    OPTION,
    'debounce.maxWait must be at least delay',
    withOptions({ debounce: { key: 'k', delay: '1m', maxWait: '1s' } }),
  ],
  [
    'an aggregate without a time',
    OPTION,
    'add().options.aggregate.maxDelay must be given',
    withOptions({ aggregate: { key: 'k' } }),
  ],
  [
    'an aggregate of one item',
    OPTION,
    'aggregate.maxSize must be an integer from 2 to 10000',
    withOptions({ aggregate: { key: 'k', maxDelay: '1s', maxSize: 1 } }),
  ],
  [
    'an aggregate and an id',
    OPTION,
    'add().options.aggregate must be left out if id is given',
    withOptions({ id: 'a', aggregate: { key: 'k', maxDelay: '1s' } }),
  ],
  [
    'a throttle without a time',
    OPTION,
    'throttle.ttl must be given',
    withOptions({ throttle: { key: 'k' } }),
  ],
  [
    'a key that is to be refused, in a bulk',
    OPTION,
    "addBulk()[1].options.unique.onDuplicate must be 'skip', 'replace' or 'keepLast' in a bulk",
    ({ queue }) =>
      queue.addBulk([
        { name: 'a', data: 1 },
        { name: 'a', data: 1, options: { unique: { key: 'k', onDuplicate: 'error' } } },
      ]),
  ],
  [
    'a key of a job that is waited for',
    OPTION,
    'addAndWait().options.unique must be left out',
    ({ queue }) => queue.addAndWait('a', 1, { unique: { key: 'k' } }),
  ],
  [
    'a place at the head of the line, and a priority',
    OPTION,
    'add().options.lifo must be left out if priority is given',
    withOptions({ lifo: true, priority: 3 }),
  ],
  [
    'a place at the head of the line, and a delay',
    OPTION,
    'add().options.lifo must be left out if delay is given',
    withOptions({ lifo: true, delay: '1s' }),
  ],
  ['a priority that is too high', OPTION, 'got 2097152 (number)', withOptions({ priority: 2_097_152 })],
  [
    'a timeout of 0',
    OPTION,
    'add().options.timeout must be a duration from 1 ms',
    withOptions({ timeout: 0 }),
  ],
  ['a timeout no timer can hold', OPTION, 'to 2147483647 ms', withOptions({ timeout: '30d' })],
  [
    'a retention that does not parse',
    OPTION,
    'add().options.retention',
    withOptions({ retention: '1 fortnight' }),
  ],
  [
    'idHeldBy of a state that holds it anyway',
    OPTION,
    "add().options.idHeldBy must be a list of 'completed', 'dead'",
    withOptions({ idHeldBy: ['active'] }),
  ],
  ['idHeldBy twice', OPTION, 'add().options.idHeldBy', withOptions({ idHeldBy: ['dead', 'dead'] })],
  ['idHeldBy that is no list', OPTION, 'add().options.idHeldBy', withOptions({ idHeldBy: 'dead' })],
  [
    'a deadline that is no moment',
    OPTION,
    'add().options.deadline must be a valid Date',
    withOptions({ deadline: '1h' }),
  ],
  ['retryFor of 0', OPTION, 'add().options.retryFor', withOptions({ retryFor: 0 })],
  ['expiresIn of 0', OPTION, 'add().options.expiresIn', withOptions({ expiresIn: 0 })],
  [
    'a backoff function for a job',
    OPTION,
    'add().options.backoff must be plain data, because it is stored',
    withOptions({ backoff: () => 1 }),
  ],
  [
    'a durability of no kind',
    OPTION,
    "add().options.durability must be 'local', 'replicated', or an object with replicas and timeout",
    withOptions({ durability: 'safe' }),
  ],
  [
    'a backoff of unknown type',
    OPTION,
    "add().options.backoff.type must be 'fixed' or 'exponential'",
    withOptions({ backoff: { type: 'linear', delay: 1 } }),
  ],
  [
    'a backoff without a delay',
    OPTION,
    'add().options.backoff.delay must be',
    withOptions({ backoff: { type: 'fixed' } }),
  ],
  [
    'a backoff with a negative wait',
    OPTION,
    'add().options.backoff[1] must be',
    withOptions({ backoff: [1, -1] }),
  ],
  [
    'an empty backoff list',
    OPTION,
    'add().options.backoff must be a list of 1 to 1000 durations',
    withOptions({ backoff: [] }),
  ],
  [
    'a misspelt option',
    OPTION,
    'add().options.delya is not an option; did you mean delay?',
    withOptions({ delya: 1 }),
  ],
  [
    '__proto__ as an option',
    OPTION,
    'add().options.__proto__ is not an option',
    withOptions(JSON.parse('{"__proto__":{"delay":1}}')),
  ],
  [
    'options that are no object',
    OPTION,
    'add().options must be an object, got "1s" (string)',
    withOptions('1s'),
  ],
  ['null as options', OPTION, 'add().options must be an object, got null (null)', withOptions(null)],
  [
    'a wait that does not parse',
    OPTION,
    'addAndWait().options.waitTimeout must be a duration',
    ({ queue }) => queue.addAndWait('job', 1, { waitTimeout: 'long' }),
  ],
  [
    'a wait of no time',
    OPTION,
    'addAndWait().options.waitTimeout must be a duration from 1 ms',
    ({ queue }) => queue.addAndWait('job', 1, { waitTimeout: 0 }),
  ],
  [
    'null as options of a wait',
    OPTION,
    'addAndWait().options must be an object',
    ({ queue }) => queue.addAndWait('job', 1, null as never),
  ],
  [
    'data of a wait that JSON cannot hold',
    PAYLOAD,
    'addAndWait().data is a BigInt',
    ({ queue }) => queue.addAndWait('job', 1n),
  ],
  [
    'a since that is no event',
    OPTION,
    'of().since must be the id of an event',
    async ({ events }) => events.of('work', { since: '1-0' }),
  ],

  [
    'data against the schema',
    'GODWIT_SCHEMA_VIOLATION',
    /^the data of job 'welcome' in queue 'work' does not match its schema: to: .+; times: .+/,
    ({ producer }) => producer.add(welcome, { to: 'ada', times: 9 }),
  ],
  [
    'data against the schema in a bulk',
    'GODWIT_SCHEMA_VIOLATION',
    /^addBulk\(\)\[1\]: the data of job 'welcome'/,
    ({ producer }) =>
      producer.addBulk(welcome, [
        { data: { to: 'a@b.org', times: 1 } },
        { data: { to: 'a@b.org', times: 9 } },
      ]),
  ],
  [
    'data against the schema to wait for',
    'GODWIT_SCHEMA_VIOLATION',
    'times: ',
    ({ producer }) => producer.addAndWait(welcome, { to: 'a@b.org', times: 9 }),
  ],
];
