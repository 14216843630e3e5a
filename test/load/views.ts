// How long the dashboard and the command need on large queues, and for how long they hold Redis, by its own clock (SLOWLOG):
//   npm run test:views -- [--waiting 1000000] [--dead 100000] [--rounds 5]
// Ends with 1 if the median of the answers, or the p90 of their scripts, is above the limit.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { main } from '#lib/subpaths/cli/main.js';
import { QueueKeys } from '#lib/engine/keys.js';
import { RedisEngine } from '#lib/engine/redis-engine.js';
import { encodeBody } from '#lib/job/job-record.js';
import { startRedis } from '../../tools/redis.mjs';
import { LEAST_US, LOAD_LIMITS } from './script-times.js';

const { values } = parseArgs({
  options: {
    waiting: { type: 'string', default: '1000000' },
    dead: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '5' },
  },
});
const WAITING = Number(values.waiting);
const DEAD = Number(values.dead);
const ROUNDS = Number(values.rounds);
const PREFIX = 'views';
const QUEUE = 'large';
const ANSWER_MS = 300;
const SCRIPT_MS = 5;
const STEP = 1_000;

const server = await startRedis({ private: true, args: ['--slowlog-max-len', '100000'] });
const admin = new Redis(server.url);
let isSlow = false;

try {
  await fill();
  await measureDashboard();
  await measureCommands();
} finally {
  admin.disconnect();
  await server.stop();
}
process.exitCode = isSlow ? 1 : 0;

async function fill(): Promise<void> {
  const limits = {
    ...LOAD_LIMITS,
    deadMaxBytes: 10_737_418_240,
    deadMax: 10_000_000,
    completedMax: 10_000_000,
  };
  const engine = new RedisEngine({
    connection: server.url,
    prefix: PREFIX,
    callMs: 60_000,
    limitsOf: () => limits,
  });
  await engine.open();
  const body = (i: number, at: number) =>
    encodeBody(`job-${i % 20}`, at, {}, JSON.stringify({ to: 'somebody', n: i }));
  const begin = Date.now() - 3_600_000;
  for (const [count, seconds] of [
    [WAITING, 0],
    [DEAD, 86_400],
  ] as const) {
    const lane = `lane-${seconds}`;
    for (let from = 0, seq = 1; from < count; from += STEP, seq++) {
      const jobs = Array.from({ length: Math.min(STEP, count - from) }, (_, i) => ({
        id: `${seconds === 0 ? 'w' : 'l'}-${from + i}`,
        name: `job-${(from + i) % 20}`,
        body: body(from + i, begin),
        ...(seconds > 0 && { dueAt: Date.now() + seconds * 1_000 + i }),
      }));
      await engine.enqueue(QUEUE, { lane, seq, rememberMs: 10_000, withinMs: 60_000, jobs });
    }
  }
  const keys = new QueueKeys(PREFIX, QUEUE).fixed;
  for (const kind of ['dead', 'completed'] as const) {
    for (let from = 0; from < DEAD; from += STEP) {
      const line = admin.pipeline();
      for (let i = from; i < Math.min(DEAD, from + STEP); i++) {
        const id = `${kind}-${i}`;
        const at = begin + Math.floor((i / DEAD) * 3_000_000);
        line.hset(keys.jobs, id, body(i, begin));
        if (kind === 'dead') {
          const entry = { at, attempt: 1, durationUs: 1_000, worker: 'w', name: 'Error' };
          const record = {
            // The entries of earlier attempts.
            log: Array.from({ length: 5 }, () => ({
              ...entry,
              message: 'no luck',
              stack: 'at x\n'.repeat(80),
            })),
            name: 'Error',
            message: `the mail server ${i % 7} refused letter ${i}`,
            stack: 'at x\n'.repeat(100),
            attempt: 3,
            reason: 'retries-exhausted',
          };
          line.zadd(keys.dead, at, id).hset(keys.failures, id, `${at}\n${JSON.stringify(record)}`);
          line.hset(keys.attempts, id, 3);
        } else {
          line.zadd(keys.completed, Date.now() + 86_400_000 + i, id);
          line.hset(keys.results, id, `${at}\n{"attempt":1,"us":10,"result":"{}"}`);
        }
      }
      await line.exec();
    }
  }
  const counts = await engine.admin.counts(QUEUE);
  console.log(JSON.stringify(counts));
  await engine.close();
}

async function measureDashboard(): Promise<void> {
  const url = new URL(server.url);
  const child = spawn(
    process.execPath,
    ['dist/subpaths/cli.js', 'serve', '--port', '9871', '-u', url.href, '--prefix', PREFIX],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  try {
    await once(child.stdout, 'data');
    head('page or call of the dashboard');
    const jobs = `queues/${QUEUE}/jobs`;
    for (const path of [
      'overview',
      'queues',
      `queues/${QUEUE}`,
      `${jobs}?state=waiting`,
      `${jobs}?state=waiting&order=desc`,
      `${jobs}?state=waiting&limit=200`,
      `${jobs}?state=waiting&name=job-7`,
      `${jobs}?state=waiting&contains=nowhere`,
      `${jobs}?state=waiting&olderThan=2h`,
      `${jobs}?state=delayed`,
      `${jobs}?state=completed`,
      `${jobs}?state=dead`,
      `${jobs}?state=dead&contains=nowhere`,
      `${jobs}?state=dead&name=job-7&order=asc`,
      `${jobs}?state=dead&error=${encodeURIComponent('Error: the mail server # refused letter #')}`,
      `${jobs}?state=dead&error=${encodeURIComponent('Error: nowhere')}`,
      `${jobs}?state=waiting&where=n%3D7`,
      `${jobs}?state=dead&olderThan=2h`,
      `${jobs}/w-${Math.floor(WAITING / 2)}`,
      `${jobs}/dead-5`,
      'dead',
      'schedules',
      'workers',
      'redis',
      'actions',
    ])
      await measure(path, () => get(path));
    for (const kind of ['retry', 'remove'])
      await measure(`act on a step of dead jobs: ${kind}`, () =>
        get(`queues/${QUEUE}/actions`, { kind, filter: { state: 'dead', contains: 'letter 5' } }),
      );
  } finally {
    child.kill();
    await once(child, 'exit');
  }
}

async function get(path: string, body?: object): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:9871/queues/api/v1/${path}`, {
    ...(body && {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
    }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
}

async function measureCommands(): Promise<void> {
  head('command, without the start of Node');
  for (const line of [
    'queues',
    'workers',
    'running',
    `stats ${QUEUE}`,
    `jobs ${QUEUE}`,
    `jobs ${QUEUE} --name job-7 --limit 20`,
    `jobs ${QUEUE} --contains nowhere`,
    `jobs ${QUEUE} --state dead --newest`,
    `job ${QUEUE} w-${Math.floor(WAITING / 2)}`,
    `dead ${QUEUE}`,
    `dead ${QUEUE} retry --name job-7 --limit 100 --dry-run`,
    `add ${QUEUE} job -d 1`,
    'schedules',
    `watch --interval 1 --times 1`,
    'health',
    'doctor',
    `tail ${QUEUE} --help`,
  ])
    await measure(`godwit ${line}`, () => command(line.split(' ')));
}

async function command(args: string[]): Promise<void> {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = ((_: unknown, then?: unknown) => {
    if (typeof then === 'function') (then as () => void)();
    return true;
  }) as typeof write;
  try {
    const more = args.includes('--help') ? [] : ['-u', server.url, '--prefix', PREFIX];
    const code = await main([...args, ...more]);
    if (code !== 0 && code !== 4) throw new Error(`godwit ${args.join(' ')} ended with ${code}`);
  } finally {
    process.stdout.write = write;
  }
}

function head(what: string): void {
  console.log(`\n${what.padEnd(60)}   answer, ms        scripts in Redis, ms`);
  console.log(
    `${''.padEnd(60)} ${['p50', 'max', 'p50', 'p90', 'max'].map((one) => one.padStart(9)).join('')}`,
  );
}

async function measure(what: string, act: () => Promise<void>): Promise<void> {
  const answers: number[] = [];
  const scripts: number[] = [];
  // The first call compiles.
  await act();
  for (let round = 0; round < ROUNDS; round++) {
    const since = performance.now();
    await act();
    answers.push(performance.now() - since);
    scripts.push(...(await timesOfScripts(act)));
  }
  const [answer, script] = [answers, scripts].map((all) => all.toSorted((a, b) => a - b)) as [
    number[],
    number[],
  ];
  const at = (all: readonly number[], part: number) => all[Math.floor((all.length - 1) * part)] ?? 0;
  const isOver = at(answer, 0.5) > ANSWER_MS || at(script, 0.9) > SCRIPT_MS;
  if (isOver) isSlow = true;
  const figures = [at(answer, 0.5), at(answer, 1), at(script, 0.5), at(script, 0.9), at(script, 1)];
  const shown = figures.map((ms) => ms.toFixed(2).padStart(9)).join('');
  console.log(`${what.padEnd(60)} ${shown}${isOver ? '  SLOW' : ''}`);
}

/** Apart from the answers, because the log takes time itself. */
async function timesOfScripts(act: () => Promise<void>): Promise<number[]> {
  await admin.config('SET', 'slowlog-log-slower-than', LEAST_US);
  await admin.call('SLOWLOG', 'RESET');
  await act();
  await admin.config('SET', 'slowlog-log-slower-than', -1);
  const entries = (await admin.call('SLOWLOG', 'GET', -1)) as [number, number, number, string[]][];
  return entries.filter(([, , , [name]]) => /^eval/i.test(name!)).map(([, , us]) => us / 1_000);
}
