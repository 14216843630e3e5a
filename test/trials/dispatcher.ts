import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { godwit, type Command } from '../cli/support.js';
import { atEnd } from '../support/cleanup.js';
import { until } from '../support/wait.js';
import { secondsSince, sum, type Lab, type Store } from './lab.js';
import type { Trial } from './trial.js';

const DELAYED = 'delayedtaskset';
const READY = 'readytasklist';
const PRODUCERS = 2;
const CONSUMERS = 3;
const CHUNK = 100;
const RESTARTS = 3;
const PATIENT = { timeout: 120_000 };

/** Every task is on the list once, whatever happens to the dispatcher. Also how fast it gets there. */
export const dispatcher: Trial = {
  name: 'dispatcher',
  what: 'tasks from ZADD to BLPOP clients, with the dispatcher killed --times times; with Redis restarted; its speed',
  times: 10,
  jobs: 100_000,
  async run(lab) {
    const store = await lab.store({ args: ['--appendonly', 'yes'] });
    await throughKills(lab, store);
    await throughRestarts(lab, store);
    for (const batchSize of [10, 100, 1_000]) await speed(lab, store, batchSize);
  },
};

const start = ({ server }: Store, ...args: string[]): Command =>
  godwit(['dispatch', '-u', server.url, ...args]);

function client({ server }: Store): Redis {
  const made = new Redis(server.url);
  // It outlives the restarts of the server.
  made.on('error', () => undefined);
  atEnd(() => made.disconnect());
  return made;
}

async function stop(command: Command): Promise<void> {
  const { code } = await command.end('SIGTERM');
  if (code !== 0) throw new Error(`the dispatcher ended with ${String(code)}: ${command.err}`);
}

/** How often each task was moved, counted without the library. */
class Receipts {
  private readonly times = new Map<string, number>();

  take(task: string): void {
    this.times.set(task, (this.times.get(task) ?? 0) + 1);
  }

  get count(): number {
    return this.times.size;
  }

  judge(lab: Lab, what: string, total: number): void {
    const twice = [...this.times.values()].filter((times) => times > 1).length;
    lab.judge({ what: `${what}: on the list at least once, of ${total}`, value: this.count, equals: total });
    lab.judge({ what: `${what}: more than once`, value: twice, equals: 0 });
  }
}

async function throughKills(lab: Lab, store: Store): Promise<void> {
  const { admin } = store;
  const receipts = new Receipts();
  const consuming = Array.from({ length: CONSUMERS }, () => consume(store, receipts, lab.jobs));
  const producing = Array.from({ length: PRODUCERS }, (_, i) => produce(store, i, lab.jobs));
  const moved = async () => receipts.count + (await admin.llen(READY));
  let kills = 0;
  for (; kills < lab.times; kills++) {
    const command = start(store);
    const enough = ((kills + 1) * lab.jobs) / (lab.times + 1);
    await until(async () => (await moved()) >= enough, PATIENT);
    await pause(Math.random() * 20);
    const { code } = await command.end('SIGKILL');
    if (code !== 'SIGKILL') throw new Error(`the dispatcher had ended with ${String(code)}: ${command.err}`);
  }
  const last = start(store);
  await Promise.all(producing);
  await until(async () => (await admin.zcard(DELAYED)) === 0, PATIENT);
  await stop(last);
  await Promise.all(consuming);
  for (const task of await admin.lrange(READY, 0, -1)) receipts.take(task);
  lab.say(`${kills} kills, ${receipts.count} tasks received`);
  receipts.judge(lab, `${kills} kills`, lab.jobs);
  await admin.del(READY);
}

/** Adds its share of the tasks. They are due from one second ago until one second from now. */
async function produce(store: Store, share: number, total: number): Promise<void> {
  const redis = client(store);
  for (let first = share * CHUNK; first < total; first += PRODUCERS * CHUNK) {
    const now = Date.now() / 1000;
    const tasks = Array.from({ length: Math.min(CHUNK, total - first) }, (_, i) => [
      now - 1 + Math.random() * 2,
      `task-${first + i}`,
    ]);
    await redis.zadd(DELAYED, ...tasks.flat());
    await pause(Math.random() * 10);
  }
}

/** Takes tasks until all are taken. */
async function consume(store: Store, receipts: Receipts, total: number): Promise<void> {
  const redis = client(store);
  while (receipts.count < total) {
    const popped = await redis.blpop(READY, 1);
    if (popped) receipts.take(popped[1]);
  }
}

/** Without consumers: a task that BLPOP had given to a broken connection would be lost with it. */
async function throughRestarts(lab: Lab, store: Store): Promise<void> {
  const { admin, server } = store;
  const total = Math.ceil(lab.jobs / 5);
  await fill(admin, total);
  const command = start(store, '-n', '1');
  for (let i = 1; i <= RESTARTS; i++) {
    await until(async () => (await admin.llen(READY)) >= (i * total) / (RESTARTS + 1), PATIENT);
    await server.restart();
  }
  await until(async () => (await admin.zcard(DELAYED)) === 0, PATIENT);
  // The last restart may have come when nothing was left to do.
  const said = () => command.err.match(/is reachable again/g)?.length ?? 0;
  await until(() => said() >= RESTARTS, PATIENT);
  await stop(command);
  const receipts = new Receipts();
  for (const task of await admin.lrange(READY, 0, -1)) receipts.take(task);
  receipts.judge(lab, `${RESTARTS} restarts of Redis`, total);
  lab.judge({ what: `${RESTARTS} restarts of Redis: said`, value: said(), equals: RESTARTS });
  await admin.del(READY);
}

async function speed(lab: Lab, store: Store, batchSize: number): Promise<void> {
  const { admin } = store;
  await fill(admin, lab.jobs);
  await admin.config('RESETSTAT');
  const command = start(store, '-n', String(batchSize));
  await until(() => admin.llen(READY), PATIENT);
  const since = performance.now();
  const before = await admin.llen(READY);
  await until(async () => (await admin.llen(READY)) === lab.jobs, PATIENT);
  const seconds = secondsSince(since);
  await stop(command);
  const stats = await admin.info('commandstats');
  const spent = ['evalsha', 'eval'].map((name) =>
    Number(new RegExp(`cmdstat_${name}:calls=\\d+,usec=(\\d+)`).exec(stats)?.[1] ?? 0),
  );
  const order = await admin.lrange(READY, 0, -1);
  const what = `batches of ${batchSize}`;
  lab.judge({ what: `${what}: speed`, value: Math.round((lab.jobs - before) / seconds), unit: 'tasks/s' });
  lab.judge({ what: `${what}: time of Redis per task`, value: sum(spent) / lab.jobs, unit: 'µs' });
  lab.judge({
    what: `${what}: tasks out of the order of their due times`,
    value: order.filter((task, i) => task !== `task-${i}`).length,
    equals: 0,
  });
  await admin.del(READY);
}

/** A backlog. All tasks are due. */
async function fill(admin: Redis, total: number): Promise<void> {
  for (let first = 0; first < total; first += 5_000) {
    const count = Math.min(5_000, total - first);
    await admin.zadd(
      DELAYED,
      ...Array.from({ length: count }, (_, i) => [first + i, `task-${first + i}`]).flat(),
    );
  }
}
