import { describe, expect, it } from 'vitest';
import { collectFaults } from '#lib/options/check.js';
import { checkJobOptions, JOB_OPTION_NAMES } from '#lib/options/job-options.js';
import {
  MODULE_OPTION_NAMES,
  QUEUE_OPTION_NAMES,
  resolveModuleOptions,
  resolveQueueOptions,
} from '#lib/options/module-options.js';
import { checkProcessorOptions } from '#lib/options/worker-options.js';
import { checkFilter } from '#lib/producer/bulk-acts.js';
import { checkJobList } from '#lib/producer/job-list.js';
import { checkQueueName } from '#lib/job/job-id.js';

const main = resolveModuleOptions();
const OF_JOBS =
  'jobId removeOnComplete removeOnFail opts attemptsMade repeat parent deduplication sizeLimit keepLogs timestamp concurrency ' +
  'continueParentOnFailure ignoreDependencyOnFailure removeDependencyOnFailure batch cron every tz pattern retryDelay maxRetries queueName flows';
const OF_QUEUES =
  'defaultJobOptions connection prefix limiter processors settings streams concurrency removeOnComplete telemetry attempts backoff delay priority ' +
  'useFactory useClass inject queueName retention group workerOptions family';
const OF_WORKERS =
  'limiter stalledInterval lockDuration lockRenewTime maxStalledCount useWorkerThreads autorun removeOnComplete removeOnFail settings metrics ' +
  'maxStartedAttempts workerForkOptions workerThreadsOptions attempts timeout limits groups group retention configKey blockingTimeout';
const OF_MODULES =
  'defaultJobOptions removeOnFail lockDuration settings attempts isGlobal password username db tls sentinels queues ' +
  'useFactory imports family retryStrategy maxRetriesPerRequest createClient cluster defaultWorkerOptions queueOptions flows guardInterval backoffStrategies';
const OURS = [...JOB_OPTION_NAMES, ...QUEUE_OPTION_NAMES, ...MODULE_OPTION_NAMES];

const check = {
  job: (options: object) => collectFaults(() => checkJobOptions(options as never, 'add().options')),
  queue: (options: object) => collectFaults((r) => resolveQueueOptions({ name: 'q', ...options }, main, r)),
  worker: (options: object) =>
    collectFaults((r) => checkProcessorOptions(options as never, '@Processor()', r)),
  module: (options: object) => collectFaults((r) => resolveModuleOptions(options as never, r)),
};

function answer(kind: keyof typeof check, word: string): string {
  try {
    return check[kind]({ [word]: 1 }).faults[0] ?? '';
  } catch (error) {
    return (error as Error).message;
  }
}

describe.each([
  ['job', OF_JOBS],
  ['queue', OF_QUEUES],
  ['worker', OF_WORKERS],
  ['module', OF_MODULES],
] as const)('an option of BullMQ in the options of a %s', (kind, words) => {
  it.each(words.split(' '))(
    '%s is refused with our option, in one sentence and without a list of all options',
    (word) => {
      const text = answer(kind, word);
      expect(text).toContain(`.${word} is not an option; `);
      expect(text).not.toMatch(/did you mean|the options are/);
      expect(text.length).toBeLessThan(220);
    },
  );
});

it.each([
  [{ unique: { id: 'a' } }, 'add().options.unique.id', 'use the field key for the key'],
  [{ debounce: { id: 'a', ttl: 5 } }, 'add().options.debounce.id', 'use the field key for the key'],
  [{ throttle: { id: 'a', ttl: 5 } }, 'add().options.throttle.id', 'use the field key for the key'],
  [{ unique: { key: 'a', ttl: 5 } }, 'add().options.unique.ttl', 'throttle: { key, ttl }'],
  [{ unique: { key: 'a', replace: true } }, 'add().options.unique.replace', "onDuplicate: 'replace'"],
  [{ unique: { key: 'a', keepLastIfActive: true } }, 'add().options.unique.keepLastIfActive', "'keepLast'"],
  [
    { debounce: { key: 'a', delay: 5, extend: true } },
    'add().options.debounce.extend',
    'debounce: { key, delay }',
  ],
  [
    { backoff: { type: 'exponential', delay: 5, maxDelay: 9 } },
    'add().options.backoff.maxDelay',
    'the option max of backoff',
  ],
])('%j is refused at its path', (options, place, advice) => {
  const call = () => checkJobOptions(options as never, 'add().options');
  expect(call).toThrow(`${place} is not an option; `);
  expect(call).toThrow(advice);
});

const WAITING = "a job that can start is 'waiting', also with a priority or in a paused queue";

it.each([
  ['failed', "a failed job is 'delayed' until its next attempt, and 'dead' after the last one"],
  ['prioritized', WAITING],
  ['wait', WAITING],
  ['paused', WAITING],
  ['waiting-children', 'there are no flows'],
  ['running', "a running job is 'active'"],
])('the state %s is refused with our state', (state, advice) => {
  const states = "one of 'waiting', 'delayed', 'active', 'completed', 'dead', 'cancelled'";
  expect(() => checkJobList({ state } as never)).toThrow(
    `jobs().state must be ${states}, got "${state}" (string); ${advice}`,
  );
  expect(() => checkFilter({ state }, 'remove()', [])).toThrow(`remove().state must be ${states}`);
  expect(() => checkFilter({ state }, 'remove()', [])).toThrow(advice);
});

it('an unknown state is refused with the rule only', () => {
  expect(() => checkJobList({ state: 'constructor' } as never)).toThrow(/got "constructor" \(string\)$/);
});

it.each([
  [
    () => checkJobList({ state: 'dead', start: 0 } as never),
    'jobs().start',
    'use the options offset and limit',
  ],
  [() => checkFilter({ grace: 5 }, 'remove()', []), 'remove().grace', 'the option olderThan'],
])('arguments of BullMQ are refused with our options', (call, place, advice) => {
  expect(call).toThrow(`${place} is not an option; `);
  expect(call).toThrow(advice);
});

it('a queue name in braces is refused because it needs none', () => {
  expect(() => checkQueueName('{email}')).toThrow(
    'got "{email}" (string); leave out the braces: all keys of a queue have one hash tag without them',
  );
});

it('our own options are not in these lists', () => {
  expect(answer('job', 'jobId')).toBe(
    'add().options.jobId is not an option; use the option id for the id of a job',
  );
  for (const name of OURS) {
    if (['concurrency', 'connection', 'prefix'].includes(name)) continue;
    expect(answer('worker', name)).not.toMatch(/option lease|there is no/);
  }
});
