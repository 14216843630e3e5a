import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { getDispatcherToken } from '#lib/decorators/metadata.js';
import { GodwitError } from '#lib/errors.js';
import { messageOf } from '#lib/errors/thrown.js';
import * as api from '#lib/index.js';
import { bootApp } from '../support/app.js';
import { ENTRIES } from '../support/entries.js';
import { ROOT } from '../support/sources.js';
import { revoked } from '../support/caught.js';

/** Values that no argument may have, unless they are listed as allowed. */
const WRONG: readonly (readonly [what: string, value: unknown])[] = [
  ['null', null],
  ['a number', 5],
  ['an empty text', ''],
  ['a list', [5]],
  ['a symbol', Symbol('x')],
  ['a function', () => 5],
  ['a date', new Date(0)],
  ['a promise', Promise.resolve({})],
  ['a misspelt option', { dealy: 5 }],
  ['a revoked proxy', revoked()],
  [
    'a getter that throws',
    {
      get limit() {
        throw new TypeError('no');
      },
      get delay() {
        throw new TypeError('no');
      },
    },
  ],
];

/** The methods of a public class, with right arguments, and which of them may be anything, as data may. */
type Calls = Readonly<Record<string, readonly [right: readonly unknown[], ...anything: number[]]>>;

const RULE = { every: '1h' };
const TEMPLATE = { name: 'a' };

const CALLS: Readonly<Record<string, Calls>> = {
  Queue: {
    add: [['a', 1, {}], 1],
    addBulk: [[[{ name: 'a', data: 1 }]]],
    addAndWait: [['a', 1, { waitTimeout: 1 }], 1],
    get: [['a']],
    jobs: [[{ state: 'dead', priority: 5 }]],
    counts: [[]],
    stats: [[{}]],
    isPaused: [[]],
    pause: [[]],
    resume: [[]],
    remove: [['nobody']],
    cancel: [['nobody', 'why']],
    update: [['nobody', { priority: 1 }], 1],
    promote: [['nobody']],
    retry: [['nobody']],
    as: [['ada']],
    group: [['a']],
    groups: [[{}]],
    publish: [['imported', 1], 1],
    obliterate: [[{ force: true }]],
    audit: [[]],
    repair: [[]],
  },
  QueueProducer: {
    add: [['work', 'a', 1, {}], 2],
    addBulk: [['work', [{ name: 'a', data: 1 }]]],
    addAndWait: [['work', 'a', 1, { waitTimeout: 1 }], 2],
    queue: [['work']],
  },
  Schedules: {
    upsert: [['s', RULE, TEMPLATE]],
    get: [['s']],
    list: [[{}]],
    count: [[]],
    history: [['s']],
    remove: [['s']],
    pause: [['s']],
    resume: [['s']],
    runNow: [['s']],
    nextRuns: [['s', 1]],
  },
  DeadJobs: { list: [[{}]], retry: [[{}]] },
  BulkActs: {
    start: [['promote', {}, {}]],
    list: [[]],
    get: [['nobody']],
    stop: [['nobody']],
    resume: [['nobody']],
  },
  QueueLimits: {
    list: [[]],
    set: [[{ concurrency: 1 }, { name: 'a' }]],
    clear: [[{ name: 'a' }]],
    hold: [[1, { name: 'a' }]],
    release: [[{ name: 'a' }]],
    shared: [['openai']],
    listShared: [[]],
    holding: [[{ name: 'a' }]],
  },
  SharedLimit: { state: [[]], set: [[{ concurrency: 1 }]], clear: [[]], hold: [[1]], release: [[]] },
  QueueGroup: { release: [[]], state: [[]], set: [[{ weight: 2 }]], clear: [[]], pause: [[]], resume: [[]] },
  QueueEvents: {
    of: [['work', {}]],
    all: [[]],
    ofType: [['work', 'dead']],
    forJob: [['work', 'a', {}]],
    drained: [['work']],
    ready: [['work']],
    close: [[]],
  },
  ProcessOrders: { pause: [[{ queue: 'work' }]], resume: [[{ queue: 'work' }]], quiet: [[{ process: 'p' }]] },
  QueueInspector: {
    workers: [[]],
    queues: [[['work']]],
    series: [['work', { host: 'web-1' }]],
    silentWorkers: [[]],
    actions: [[{}]],
    bulkActs: [[]],
  },
  QueueRuntime: {
    start: [[]],
    stop: [[]],
    pause: [['work']],
    resume: [['work']],
    quiet: [['work']],
    concurrency: [['work']],
    setConcurrency: [['work', 3], 1],
    work: [['other', () => 1, {}], 1],
  },
  Dispatcher: {},
};

/**
 * These throw because of where they are called, not because of their arguments: see `bootstrap-faults.spec.ts` and
 * `module.spec.ts`.
 */
const OTHER_CLASSES = ['QueueModule', 'QueueExecutionContext'];

const publicClasses = () =>
  readFileSync(join(ROOT, 'test/public-api.txt'), 'utf8')
    .split('\n')
    .flatMap((line) => (line.startsWith('class ') ? [line.slice(6)] : []))
    .filter((name) => !((api as Record<string, any>)[name].prototype instanceof GodwitError))
    .filter((name) => name !== 'GodwitError');

/** The methods of each exported class that users may call, from the published types. */
function publicMethods(): ReadonlyMap<string, readonly string[]> {
  const { types } = ENTRIES.find(({ name }) => name === 'godwit')!;
  const program = ts.createProgram([types], { skipLibCheck: true, noEmit: true });
  const checker = program.getTypeChecker();
  const module = checker.getSymbolAtLocation(program.getSourceFile(types)!)!;
  const classes = checker.getExportsOfModule(module).map((symbol) => {
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    const members = [...(target.members?.values() ?? [])].filter(
      (member) =>
        member.flags & ts.SymbolFlags.Method &&
        !member.getJsDocTags().some(({ name }) => name === 'internal') &&
        !member.declarations!.some((one) => ts.getCombinedModifierFlags(one) & ts.ModifierFlags.Private),
    );
    return [symbol.name, members.map(({ name }) => name).toSorted()] as const;
  });
  return new Map(classes);
}

async function boot() {
  const { QueueModule, QueueProducer, QueueEvents, QueueInspector, QueueRuntime, getQueueToken } = api;
  const { get } = await bootApp({
    imports: [
      QueueModule.forRoot({ connection: 'memory', enqueueTimeout: 200 }),
      QueueModule.registerQueue({ name: 'work' }),
    ],
  });
  const queue = get<api.Queue>(getQueueToken('work'));
  await queue.schedules.upsert('s', RULE as never, TEMPLATE as never);
  const objects: Record<string, object | undefined> = {
    Queue: queue,
    Schedules: queue.schedules,
    DeadJobs: queue.dead,
    BulkActs: queue.bulkActs,
    QueueLimits: queue.limits,
    QueueGroup: queue.group('a'),
    SharedLimit: queue.limits.shared('api'),
    QueueProducer: get(QueueProducer),
    QueueEvents: get(QueueEvents),
    QueueInspector: get(QueueInspector),
    ProcessOrders: get(QueueInspector).processes,
    QueueRuntime: get(QueueRuntime),
  };
  return objects;
}

/** Undefined if it went well. */
async function errorOf(object: object, method: string, args: readonly unknown[]): Promise<unknown> {
  try {
    const answer: unknown = (object as Record<string, (...given: unknown[]) => unknown>)[method]!(...args);
    if (answer instanceof Promise) await answer;
    return undefined;
  } catch (error) {
    return error ?? new Error('threw nothing');
  }
}

describe('every public method', () => {
  it('is in the table, and no other', () => {
    const classes = [...Object.keys(CALLS), ...OTHER_CLASSES].toSorted();
    expect(publicClasses().toSorted(), 'CALLS has every class, or OTHER_CLASSES').toEqual(classes);
    const methods = publicMethods();
    for (const [name, calls] of Object.entries(CALLS)) {
      const advice = `CALLS has valid arguments of every method of ${name}`;
      expect(methods.get(name), advice).toEqual(Object.keys(calls).toSorted());
    }
  });

  it.each(Object.keys(CALLS).filter((name) => name !== 'Dispatcher'))(
    'of %s refuses invalid arguments with a typed error that names the place and the value',
    async (name) => {
      const object = (await boot())[name]!;
      const odd: string[] = [];
      for (const [method, [right, ...anything]] of Object.entries(CALLS[name]!)) {
        for (const at of right.keys()) {
          if (anything.includes(at)) continue;
          for (const [what, value] of WRONG) {
            if (typeof value === 'number' && typeof right[at] === 'number') continue;
            const error = await errorOf(object, method, right.with(at, value));
            const call = `${name}.${method}, argument ${at + 1} is ${what}`;
            if (error === undefined) odd.push(`${call}: taken`);
            else if (!(error instanceof GodwitError)) odd.push(`${call}: ${messageOf(error)}`);
            else if (error.code === 'GODWIT_REDIS_UNAVAILABLE') odd.push(`${call}: ${error.message}`);
          }
        }
      }
      expect(odd).toEqual([]);
    },
  );

  it.each(Object.keys(CALLS).filter((name) => name !== 'Dispatcher'))(
    'of %s works or throws a typed error, with no arguments or with too many',
    async (name) => {
      const object = (await boot())[name]!;
      const odd: string[] = [];
      for (const [method, [right]] of Object.entries(CALLS[name]!)) {
        for (const args of [
          [],
          [undefined, undefined, undefined],
          [...right, undefined, 'more', 'still more'],
        ]) {
          const error = await errorOf(object, method, args);
          if (error !== undefined && !(error instanceof GodwitError))
            odd.push(`${name}.${method}(${args.length} arguments): ${messageOf(error)}`);
        }
      }
      expect(odd).toEqual([]);
    },
  );
});

describe('every public function', () => {
  it.each<[string, (value: unknown) => unknown]>([
    ['getQueueToken', (value) => api.getQueueToken(value as string)],
    ['defineJob: the queue', (value) => api.defineJob(value as string, 'a')],
    ['defineJob: the name', (value) => api.defineJob('work', value as string)],
    ['defineJob: the schema', (value) => api.defineJob('work', 'a', value as never)],
    ['ofType', (value) => api.ofType(value as never)],
    ['Snooze', (value) => new api.Snooze(value as string)],
    ['forRootAsync', (value) => api.QueueModule.forRootAsync(value as never)],
    ['registerQueueAsync', (value) => api.QueueModule.registerQueueAsync(value as never)],
    ['registerDispatcherAsync', (value) => api.QueueModule.registerDispatcherAsync(value as never)],
  ])('%s refuses what it cannot use with a typed error', (_, call) => {
    const odd: string[] = [];
    for (const [what, value] of [...WRONG, ['undefined', undefined] as const]) {
      try {
        call(value);
        odd.push(`${what}: taken`);
      } catch (error) {
        if (!(error instanceof GodwitError)) odd.push(`${what}: ${messageOf(error)}`);
      }
    }
    // A number of ms is a duration, and a name may be any text.
    expect(odd.filter((text) => text !== 'a number: taken')).toEqual([]);
  });

  it('makes a token of any value, so that the error for an unregistered one is readable', () => {
    expect(getDispatcherToken(null as never)).toContain('null');
  });
});
