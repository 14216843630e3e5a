import { EVENT_TYPES, type EventType } from '../contract/engine.js';

const STATUS = 'the log and QueueEvents.status$ show the state of the connection';
const DRAINED = "use the observable QueueEvents.drained('queue')";
const RUNTIME =
  'QueueRuntime.state is the state of the workers; Nest has hooks for the start and the end of the application';
const DUPLICATE = 'add() returns { duplicate: true }';
const SAID_BY_ADD = "the event of an added job is 'added'";

/** Events of BullMQ that neither decorator has. */
const NOWHERE: Readonly<Record<string, string>> = {
  error: STATUS,
  'ioredis:close': STATUS,
  drained: DRAINED,
  ready: RUNTIME,
  closing: RUNTIME,
  closed: RUNTIME,
  debounced: DUPLICATE,
  deduplicated: DUPLICATE,
  duplicated: DUPLICATE,
  lockRenewalFailed: 'job.signal aborts when a worker has lost its lease, with the reason lease-lost',
  'retries-exhausted': "the event of a job without attempts left is 'dead'",
  'waiting-children': 'there are no flows',
};

/** Events of BullMQ that `@OnJob` lacks. */
const NOT_OF_JOBS: Readonly<Record<string, string>> = {
  ...NOWHERE,
  retrying: "use 'failed': it is reported for each failed attempt, also if the job is retried",
  waiting: `${SAID_BY_ADD}; use @OnQueueEvent for it`,
  cleaned: "@OnQueueEvent('removed') is called for each job",
};

/** Events of BullMQ that queues lack. */
const NOT_OF_QUEUES: Readonly<Record<string, string>> = {
  ...NOWHERE,
  failed:
    "use 'retrying' for an attempt that is retried and 'dead' for the last one; @OnJob('failed') gets both",
  waiting: SAID_BY_ADD,
  cleaned: "use 'removed', which is written for each removed job",
};

/** Advice for the first of these words that is an event of BullMQ, or of the other decorator. Empty if there is none. */
export function adviceForJobs(words: readonly unknown[]): string {
  const ofQueues = words.find((word) => EVENT_TYPES.includes(word as EventType) && word !== 'retrying');
  return ofQueues === undefined
    ? adviceOf(words, NOT_OF_JOBS)
    : `; @OnQueueEvent('${ofQueues as EventType}') gets it, in any provider`;
}

/** The same advice for `@OnQueueEvent` and `ofType`. */
export function adviceForQueues(words: readonly unknown[]): string {
  return adviceOf(words, NOT_OF_QUEUES);
}

function adviceOf(words: readonly unknown[], table: Readonly<Record<string, string>>): string {
  const word = words.find((one) => typeof one === 'string' && Object.hasOwn(table, one));
  return word === undefined ? '' : `; ${table[word as string]}`;
}
