// How long upkeep holds Redis on large queues, by the clock of Redis itself (SLOWLOG):
//   npm run test:upkeep -- [--jobs 100000] [--obliterate 1000000]
// Ends with 1 where a script has a p99 above the limit.
import { parseArgs } from 'node:util';
import { QueueKeys } from '#lib/engine/keys.js';
import type { JobsPlace } from '#lib/contract/admin-verbs.js';
import { encodeBody } from '#lib/job/job-record.js';
import { LOAD_LIMITS, startLoad } from './script-times.js';

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '100000' },
    obliterate: { type: 'string', default: '1000000' },
  },
});
const JOBS = Number(values.jobs);
/** Of the p99. A machine that does other things too takes longer. */
const LIMIT_MS = 5;
const STEP = 10_000;
const QUEUE = 'upkeep';
const DAY = 86_400_000;

const limits = {
  ...LOAD_LIMITS,
  eventsAgeMs: null as number | null,
  deadMax: 10_000_000,
  deadAgeMs: 900 * DAY,
  completedMax: 10_000_000,
};
const { admin, engine, times, stop } = await startLoad('load', LIMIT_MS, limits);
const { upkeep } = engine;
const keys = new QueueKeys('load', QUEUE).fixed;

const body = (i: number, agoMs: number) =>
  encodeBody('job', Date.now() - agoMs, {}, JSON.stringify({ to: 'somebody', n: i }));
const record = JSON.stringify({
  name: 'Error',
  message: 'no luck',
  stack: 'at x\n'.repeat(200),
  attempt: 3,
  reason: 'retries-exhausted',
});

/** Writes jobs without the scripts: of the two hours before now, the first is the oldest. */
async function fill(
  count: number,
  put: (id: string, at: number) => [string, ...(string | number)[]][],
): Promise<void> {
  const begin = Date.now() - 2 * 3_600_000;
  for (let from = 0; from < count; from += STEP) {
    const lists = new Map<string, (string | number)[]>();
    for (let i = from; i < Math.min(count, from + STEP); i++) {
      const id = `job-${String(i).padStart(8, '0')}`;
      const at = begin + Math.floor((i / count) * 3_600_000);
      const rows: [string, ...(string | number)[]][] = [
        ['hset jobs', id, body(i, Date.now() - at)],
        ...put(id, at),
      ];
      for (const [where, ...row] of rows) {
        const list = lists.get(where);
        if (list) list.push(...row);
        else lists.set(where, row);
      }
    }
    for (const [where, row] of lists) {
      const [command, kind] = where.split(' ') as [string, keyof typeof keys];
      await admin.call(command, keys[kind], ...row);
    }
  }
}

const fillDead = () =>
  fill(JOBS, (id, at) => [
    ['zadd dead', at, id],
    ['hset failures', id, `${at}\n${record}`],
    ['hset attempts', id, 3],
  ]);
const fillCompleted = () =>
  fill(JOBS, (id, at) => [
    ['zadd completed', at + 10 * DAY, id],
    ['hset results', id, `${at}\n{"attempt":1,"us":10,"result":"{\\"pdf\\":\\"x\\"}"}`],
  ]);

async function until0(step: () => Promise<{ length: number } | number>): Promise<void> {
  for (let more = 1; more > 0;) {
    const some = await step();
    more = typeof some === 'number' ? some : some.length;
  }
}

const cleanAll = (state: 'completed' | 'dead' | 'waiting' | 'delayed', olderThanMs = 0) =>
  until0(async () => (await upkeep.clean(QUEUE, { state, olderThanMs, limit: 1_000 })).removed);

let deep: JobsPlace | null = null;

try {
  await engine.open();
  times.head();
  await fillDead();
  await times.measured(`${JOBS} dead: a filter that fits none`, () =>
    upkeep.retryDead(QUEUE, { reason: 'expired', limit: 1_000 }),
  );
  await times.measured(`${JOBS} dead: list the first 1,000`, () =>
    engine.admin.jobs(QUEUE, { state: 'dead', after: null, limit: 1_000 }),
  );
  await times.measured(`${JOBS} dead: list 20 backward, with a text that none has`, () =>
    engine.admin.jobs(QUEUE, {
      state: 'dead',
      after: null,
      limit: 20,
      backward: true,
      contains: 'none',
      brief: true,
    }),
  );
  await times.measured(`${JOBS} dead: retry all`, () =>
    until0(async () => (await upkeep.retryDead(QUEUE, { limit: 1_000 })).retried),
  );
  await times.measured(`${JOBS} waiting: 10 pages of 1,000`, async () => {
    let after: JobsPlace | null = null;
    for (let pages = 0; pages < 10; pages++)
      after = (await engine.admin.jobs(QUEUE, { state: 'waiting', after, limit: 1_000, brief: true })).next;
    deep = { ...after!, at: String(JOBS / 2) };
  });
  await times.measured(
    `${JOBS} waiting: a page behind a job that is ${JOBS / 2} nearer to the head than it was`,
    () => engine.admin.jobs(QUEUE, { state: 'waiting', after: deep, limit: 100, brief: true }),
  );
  await times.measured(`${JOBS} waiting: clean what is older than 90 minutes`, () =>
    cleanAll('waiting', 5_400_000),
  );
  await times.measured(`what is left waiting: clean all`, () => cleanAll('waiting'));
  await fillDead();
  await times.measured(`${JOBS} dead: remove all`, () =>
    until0(async () => (await upkeep.removeDead(QUEUE, { limit: 1_000 })).removed),
  );
  await fillDead();
  limits.deadMax = 0;
  await times.measured(`${JOBS} dead: trim to none`, () => until0(() => upkeep.trim(QUEUE)));
  limits.deadMax = 10_000_000;
  await fillCompleted();
  await times.measured(`${JOBS} completed: clean, none old enough`, () => cleanAll('completed', DAY));
  await times.measured(`${JOBS} completed: clean all`, () => cleanAll('completed'));
  await fillCompleted();
  limits.completedMax = 0;
  await times.measured(`${JOBS} completed: trim to none`, () => until0(() => upkeep.trim(QUEUE)));
  await fill(JOBS, (id, at) => [['zadd delayed', at + 10 * DAY, id]]);
  await times.measured(`${JOBS} delayed: clean all`, () => cleanAll('delayed'));
  limits.completedMax = 10_000_000;
  for (let i = 1; i <= JOBS; i++)
    void admin.xadd(keys.events, `${1_000_000 + i}-0`, 'at', Date.now() - DAY, 'n', 1, 'added', `job-${i}`);
  await admin.ping();
  limits.eventsAgeMs = 3_600_000;
  await times.measured(`${JOBS} entries of events: trim by age`, () => until0(() => upkeep.trim(QUEUE)));
  const queues = Array.from({ length: 100 }, (_, i) => `quiet-${i}`);
  await times.measured('a look at 100 queues', () => upkeep.overgrown(queues));
  const many = Number(values.obliterate);
  await fill(many, (id, at) => [
    ['rpush wait', id],
    ['zadd delayed', at, id],
    ['hset failures', id, `${at}\n${record.slice(0, 100)}`],
  ]);
  await times.measured(`obliterate ${many} jobs`, () => engine.admin.obliterate(QUEUE, false));
} finally {
  await stop();
}
process.exitCode = times.isSlow ? 1 : 0;
