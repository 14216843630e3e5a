import { setTimeout as pause } from 'node:timers/promises';
import { QueueKeys } from '#lib/engine/keys.js';
import type { AppProcess } from '../faults/support/spawn.js';
import { startCut, type Cut } from '../support/cut.js';
import type { CutConnection } from '../support/cut/connection.js';
import { collect, until } from '../support/wait.js';
import { PREFIX, end, repeat, secondsSince, sum, worst, type Lab, type Store } from './lab.js';
import type { Trial } from './trial.js';

const ROLES = ['command', 'blocking', 'heartbeat', 'events'] as const;
type Role = (typeof ROLES)[number];
const MAX_S = 10;
const SHORT_LEASE_MS = 1_000;

/** A connection that goes silent without being closed is noticed and logged. */
export const halfOpen: Trial = {
  name: 'half-open',
  what: 'one connection after another goes silent and stays open: seconds until it does its work again',
  times: 5,
  async run(lab) {
    const taken = await Promise.all(ROLES.map(async (role) => [role, await silence(lab, role)] as const));
    for (const [role, { seconds, told }] of taken) {
      const what = `${role} connection`;
      lab.judge({
        what: `${what}: works again, worst of ${lab.times}`,
        value: worst(seconds),
        unit: 's',
        atMost: MAX_S,
      });
      lab.judge({ what: `${what}: times it was said as an error`, value: told, equals: lab.times });
    }
    await shortLease(lab);
  },
};

/** A worker whose connections can go silent, one at a time. */
class Behind {
  private constructor(
    readonly worker: AppProcess,
    private readonly cut: Cut,
    private readonly role: Role,
    private connection: CutConnection,
  ) {}

  static async start(lab: Lab, store: Store, role: Role, root = {}, queue = 'work'): Promise<Behind> {
    const cut = await startCut(store.server.url);
    const connecting = cut.carrying(`godwit:${PREFIX}:${role}`, { timeout: 30_000 });
    const worker = await lab.worker(store, {
      concurrency: 10,
      queue,
      root: { connection: cut.url, ...root },
    });
    if (role === 'events') await worker.call('listen');
    return new Behind(worker, cut, role, await connecting);
  }

  /** Resolves with its time. `again`: when there is a new connection. */
  silence(): { since: number; again: Promise<void> } {
    const { connection } = this;
    const again = this.cut.carrying(`godwit:${PREFIX}:${this.role}`, { timeout: 60_000 }).then((next) => {
      // Redis would take it for a client that still waits.
      connection.destroy();
      this.connection = next;
    });
    again.catch(() => undefined);
    connection.blackhole();
    return { since: performance.now(), again };
  }

  /** Whether the log has since said that this connection is in trouble. */
  said(since: number): boolean {
    return this.worker.all('link').some(({ role, text, at }) => role === this.role && at >= since && text);
  }
}

async function silence(lab: Lab, role: Role): Promise<{ seconds: number[]; told: number }> {
  const store = await lab.store();
  const queue = (await lab.producer(store, 'work')).queue('work');
  const behind = await Behind.start(lab, store, role);
  const { worker } = behind;
  const lease = leaseOf(store, 'work');
  if (role === 'heartbeat') await queue.add('hold', null).then(() => worker.first('started'));
  const sleeps = async () => String(await store.admin.call('CLIENT', 'LIST')).includes('cmd=bzpopmin');
  const seconds: number[] = [];
  let told = 0;
  for (let i = 1; i <= lab.times; i++) {
    await until(sleeps);
    // At any time between two beats.
    await pause(500 + Math.random() * 2_000);
    const { since, again } = behind.silence();
    let at: number;
    if (role === 'heartbeat') {
      const before = await lease();
      await until(async () => (await lease())! > before!, { timeout: 60_000, what: 'the lease is renewed' });
      at = performance.now();
    } else {
      const { id } = await queue.add('quick', null);
      const kind = role === 'events' ? 'event' : 'started';
      ({ at } = await worker.first(kind, (said) => said.id === id, { timeout: 60_000 }));
    }
    await again;
    const one = secondsSince(since, at);
    seconds.push(one);
    told += behind.said(since) ? 1 : 0;
    lab.say(`${role}, ${i}: ${one.toFixed(2)} s`);
  }
  await end(worker);
  return { seconds, told };
}

/** A short lease leaves little time to notice before other workers take the jobs. */
async function shortLease(lab: Lab): Promise<void> {
  const store = await lab.store();
  const times = 4 * lab.times;
  const names = Array.from({ length: times }, (_, i) => `work-${i}`);
  const { queue, events } = await lab.producer(store, ...names);
  const recovered = await repeat(times, 4, async (i) => {
    const name = names[i]!;
    const stalled = collect(events.ofType(name, 'stalled'));
    await events.ready(name);
    const root = { lease: { duration: SHORT_LEASE_MS } };
    const behind = await Behind.start(lab, store, 'heartbeat', root, name);
    await queue(name).add('hold', null);
    await behind.worker.first('started');
    const watcher = await lab.worker(store, { concurrency: 1, root, queue: name });
    const lease = leaseOf(store, name);
    const held = await until(lease, { timeout: 30_000 });
    await until(async () => (await lease())! > held);
    behind.silence();
    const isOver = async () => stalled.values.length > 0 || (await lease())! > held + 5 * SHORT_LEASE_MS;
    await until(isOver, { timeout: 60_000, what: 'the lease is renewed, or has been taken for over' });
    await end(behind.worker, watcher);
    return stalled.values.length;
  });
  lab.judge({
    what: `lease ${SHORT_LEASE_MS / 1000} s, heartbeat connection silent ${times} times: false recoveries`,
    value: sum(recovered),
    equals: 0,
  });
}

/** When the only lease ends, by the clock of Redis. */
function leaseOf({ admin }: Store, queue: string): () => Promise<number | undefined> {
  const key = new QueueKeys(PREFIX, queue).fixed.workers;
  return async () => Number((await admin.zrange(key, 0, '0', 'WITHSCORES'))[1]) || undefined;
}
