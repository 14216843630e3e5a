// Measures the cost of enhancers for each job, without Redis: the call alone, awaited to its end.
//   npm run test:enhancers -- [--rounds 5] [--calls 100000]
// Beside it: Nest's own ExternalContextCreator for the same method, in the same run and as first measured on an idle
// machine (Nest 12.5.1). A direct call shows the cost of the method itself.
import 'reflect-metadata';
import { parseArgs } from 'node:util';
import { ParseIntPipe, UseFilters, UseGuards, UseInterceptors } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { ApplicationConfig, ExternalContextCreator, ModulesContainer, NestFactory } from '@nestjs/core';
import { Attempt, JobData, JobId, Signal } from '#lib/decorators/job-params.decorator.js';
import { HandlerMaker, jobParams } from '#lib/handlers/handler-maker.js';
import type { HandledJob, Handler } from '#lib/worker/handler.js';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, calls: { type: 'string', default: '100000' } },
});
const ROUNDS = Number(values.rounds);
const CALLS = Number(values.calls);

const guard = { canActivate: () => true };
const interceptor = { intercept: (_: unknown, next: { handle(): any }) => next.handle() };
const filter = { catch: (error: unknown) => error };

class Work {
  async plain(_job: unknown) {}
  async withContext(_job: unknown, _context: unknown) {}
  async guarded(_job: unknown) {}
  async filtered(_job: unknown) {}
  async oneParameter(_data: unknown) {}
  async threeParameters(_data: unknown, _id: unknown, _attempt: unknown) {}
  async piped(_n: number) {}
  async intercepted(_job: unknown) {}
  async everything(_data: unknown, _id: unknown, _attempt: unknown) {}
  async signalled(_signal: unknown) {}
}

/** Decorators as calls, next to the costs that they cause. */
function decorate(name: keyof Work, ...decorators: MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(Work.prototype, name)!;
  for (const one of decorators) one(Work.prototype, name, descriptor);
}
decorate('guarded', UseGuards(guard));
decorate('filtered', UseFilters(filter));
decorate('intercepted', UseInterceptors(interceptor));
decorate('everything', UseGuards(guard), UseInterceptors(interceptor));
JobData()(Work.prototype, 'oneParameter', 0);
for (const name of ['threeParameters', 'everything']) {
  JobData()(Work.prototype, name, 0);
  JobId()(Work.prototype, name, 1);
  Attempt()(Work.prototype, name, 2);
}
JobData('n', new ParseIntPipe())(Work.prototype, 'piped', 0);
Signal()(Work.prototype, 'signalled', 0);

/** Path, method, and the nanoseconds of Nest's creator. */
const PATHS: readonly (readonly [string, keyof Work, string])[] = [
  ['direct', 'plain', '41'],
  ['direct, with the context', 'withContext', ''],
  ['filter', 'filtered', '281'],
  ['guard', 'guarded', '421'],
  ['1 parameter', 'oneParameter', '591'],
  ['3 parameters', 'threeParameters', '788'],
  ['1 parameter + ParseIntPipe', 'piped', '881'],
  ['interceptor', 'intercepted', '2600'],
  ['guard + interceptor + 3 parameters', 'everything', '3600'],
];

class Root {}
const app = await NestFactory.createApplicationContext(
  { module: Root, providers: [Work] },
  { logger: false },
);
const modules = app.get(ModulesContainer);
const instance = app.get<Record<string, any>>(Work);
const moduleKey = [...modules].find(([, one]) => one.providers.has(Work))![0];
const maker = new HandlerMaker(modules, new ApplicationConfig());

const before = maker.direct({ instance, method: 'plain', label: 'Work.plain', moduleKey });
const now = maker.make({ instance, method: 'plain', label: 'Work.plain', moduleKey });
if (now.toString() !== before.toString())
  throw new Error('the direct path is not the one of a handler without enhancers');

const job = {
  id: '1',
  name: 'work',
  queue: 'work',
  data: { n: 5 },
  attempt: 1,
  attempts: 3,
  aborted: undefined,
  stage: undefined,
} as unknown as HandledJob;

/** Awaited to its end, as a pool does. An Observable is subscribed to. */
function ended(values: any): Promise<void> {
  return new Promise((resolve, reject) => {
    values.subscribe({ next: () => {}, error: reject, complete: () => resolve() });
  });
}

/** CPU time, so that other programs of the machine do not count. */
async function nanoseconds(run: Handler, calls: number): Promise<number> {
  const start = process.cpuUsage();
  for (let call = 0; call < calls; call++) {
    const returned: any = await run(job);
    if (returned !== undefined) await ended(returned);
  }
  const { user, system } = process.cpuUsage(start);
  return ((user + system) * 1000) / calls;
}

const config = new ApplicationConfig();
type Container = Parameters<typeof ExternalContextCreator.fromContainer>[0];
const container = { getModules: () => modules, applicationConfig: config } as unknown as Container;
const nest = ExternalContextCreator.fromContainer(container);

/** The same method through Nest's creator, unchanged. */
function throughNest(method: keyof Work): Handler {
  const call = nest.create(
    instance,
    instance[method],
    method,
    ROUTE_ARGS_METADATA,
    jobParams,
    undefined,
    undefined,
    {
      guards: true,
      interceptors: true,
      filters: method === 'filtered',
    },
  );
  return (given) => call(given, undefined);
}

/** In turn and repeated, so that a busy moment of the machine does not affect one path alone. */
const runs = PATHS.map(([path, method, recorded]) => {
  const target = { instance, method, label: `Work.${method}`, moduleKey };
  return {
    path,
    recorded,
    took: { ours: [] as number[], nest: [] as number[] },
    ours: maker.make(target),
    nest: throughNest(method),
  };
});
for (const { ours, nest: theirs } of runs) {
  await nanoseconds(ours, CALLS / 10);
  await nanoseconds(theirs, CALLS / 10);
}
for (let round = 0; round < ROUNDS; round++) {
  for (const one of runs) {
    one.took.ours.push(await nanoseconds(one.ours, CALLS));
    one.took.nest.push(await nanoseconds(one.nest, CALLS));
  }
}
await app.close();

function median(numbers: readonly number[]): number {
  return Math.round(numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!);
}
console.log(`node ${process.version}, ${ROUNDS} rounds of ${CALLS} calls, ns of CPU per job, medians`);
console.table(
  Object.fromEntries(
    runs.map(({ path, recorded, took }) => [
      path,
      { 'per job': median(took.ours), 'Nest here': median(took.nest), 'Nest then': recorded },
    ]),
  ),
);
