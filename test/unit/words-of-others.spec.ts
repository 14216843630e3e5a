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

const main = resolveModuleOptions();
const OF_JOBS =
  'jobId removeOnComplete removeOnFail opts attemptsMade repeat parent deduplication sizeLimit keepLogs timestamp concurrency ' +
  'continueParentOnFailure ignoreDependencyOnFailure removeDependencyOnFailure batch';
const OF_QUEUES =
  'defaultJobOptions connection prefix limiter processors settings streams concurrency removeOnComplete telemetry attempts backoff delay priority';
const OF_WORKERS =
  'limiter stalledInterval lockDuration lockRenewTime maxStalledCount useWorkerThreads autorun removeOnComplete removeOnFail settings metrics ' +
  'maxStartedAttempts workerForkOptions workerThreadsOptions attempts timeout limits groups';
const OF_MODULES =
  'defaultJobOptions removeOnFail lockDuration settings attempts isGlobal password username db tls sentinels queues';
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
] as const)('an option of BullMQ in the place of a %s', (kind, words) => {
  it.each(words.split(' '))('%s is answered with ours, in one sentence and without a list of all', (word) => {
    const text = answer(kind, word);
    expect(text).toContain(`.${word} is not an option; `);
    expect(text).not.toMatch(/did you mean|the options are/);
    expect(text.length).toBeLessThan(220);
  });
});

it.each([
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
])('%j is answered at its place', (options, place, advice) => {
  const call = () => checkJobOptions(options as never, 'add().options');
  expect(call).toThrow(`${place} is not an option; `);
  expect(call).toThrow(advice);
});

it('options of our own are not among the words', () => {
  expect(answer('job', 'jobId')).toBe(
    'add().options.jobId is not an option; the id of a job is the option id',
  );
  for (const name of OURS) {
    if (['concurrency', 'connection', 'prefix'].includes(name)) continue;
    expect(answer('worker', name)).not.toMatch(/option lease|there is no/);
  }
});
