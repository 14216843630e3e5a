import { setTimeout as pause } from 'node:timers/promises';
import { FAULTS, type FaultKind } from './faults.js';
import type { Child, Fleet } from './fleet.js';
import type { Kind } from './load.js';
import type { Recorder } from '../history/recorder.js';
import type { LedgerWriter } from './ledger/writer.js';
import type { Options } from './options.js';
import type { Store } from './redis/store.js';
import type { Act } from './schedule.js';

interface World {
  readonly store: Store;
  readonly fleet: Fleet;
  readonly options: Options;
}

/** An act, and whom it met: `worker 2`, or `redis` for all. */
type Deed = (act: Act, world: World) => Promise<Done>;
interface Done {
  readonly said: string;
  readonly met: string;
  /** The store may not know any more of what it acknowledged between these times, on the clock of the machine. */
  readonly forgets?: { readonly from: number; readonly to: number };
}

/** How long a process that was told to kill itself at a certain moment may wait for that moment. */
const MOMENT_MS = 3_000;
/** How long a process may take until something can be done to it; it may have to be started first. */
const VICTIM_MS = 60_000;
/** Longer than a producer tries to add a job. */
const ADD_MS = 8_000;

/** Does what the schedule says, and writes down when and to whom. */
export class Nemesis {
  readonly done = {} as Record<FaultKind, number>;
  /** The faults it caused. The watcher empties the list. */
  readonly news: string[] = [];
  private readonly lanes = new Map<string, Promise<void>>();
  private readonly timer: NodeJS.Timeout;
  private next = 0;

  constructor(
    private readonly schedule: readonly Act[],
    private readonly world: World,
    private readonly ledger: LedgerWriter,
    private readonly recorder: Recorder,
    progress: () => number,
  ) {
    for (const kind of Object.keys(FAULTS) as FaultKind[]) this.done[kind] = 0;
    this.timer = setInterval(() => {
      const now = progress();
      while (this.next < schedule.length && schedule[this.next]!.at <= now)
        this.begin(schedule[this.next++]!);
    }, 20);
  }

  get left(): number {
    return this.schedule.length - this.next;
  }

  /** Begins nothing more; resolves when what has begun is over. */
  async end(): Promise<void> {
    clearInterval(this.timer);
    await Promise.all(this.lanes.values());
  }

  private begin(act: Act): void {
    const before = this.lanes.get(act.lane) ?? Promise.resolve();
    this.lanes.set(
      act.lane,
      before.then(() => this.commit(act)),
    );
  }

  private async commit(act: Act): Promise<void> {
    const from = this.ledger.now();
    const start = this.recorder.now();
    try {
      const { said, met, forgets } = await DEEDS[act.kind](act, this.world);
      this.done[act.kind] += 1;
      this.news.push(said);
      this.ledger.write(`K ${act.kind} ${from} ${this.ledger.now()} ${met}\n`);
      const args = {
        kind: act.kind,
        met,
        ...(forgets && {
          forgets: { from: this.recorder.now(forgets.from), to: this.recorder.now(forgets.to) },
        }),
      };
      this.recorder.write({ verb: 'fault', args, start });
    } catch (error) {
      this.world.fleet.accidents.push(`${act.kind} failed: ${(error as Error).message}`);
    }
  }
}

const DEEDS: Record<FaultKind, Deed> = {
  'worker-kill': async (act, { fleet }) => {
    const child = await busyWorker(act, fleet);
    child.doom = 'kill';
    if (act.how === 'any-time') await pause(act.ms);
    else child.tell({ do: 'die', when: act.how as 'after-end', count: act.count });
    const alone = act.how !== 'any-time' && (await child.endsWithin(MOMENT_MS));
    child.signal('SIGKILL');
    await child.exited;
    return { said: `SIGKILL w${act.slot} ${alone ? act.how : 'any-time'}`, met: child.file };
  },
  'worker-stop': async (act, { fleet }) => {
    const child = await busyWorker(act, fleet);
    child.signal('SIGSTOP');
    await pause(act.ms);
    child.signal('SIGCONT');
    return { said: `SIGSTOP w${act.slot} ${act.ms} ms`, met: child.file };
  },
  'worker-term': async (act, { fleet }) => {
    const child = await busyWorker(act, fleet);
    child.doom = 'term';
    child.signal('SIGTERM');
    if (!(await child.endsWithin(20_000))) {
      fleet.accidents.push(`${child.file} did not stop within 20 s of its SIGTERM`);
      child.signal('SIGKILL');
    }
    await child.exited;
    return { said: `SIGTERM w${act.slot}`, met: child.file };
  },
  'producer-kill': async (act, { fleet }) => {
    const child = fleet.at('producer', act.slot);
    if (child.done) return { said: `p${act.slot} is done already`, met: 'nobody' };
    await child.ready;
    child.doom = 'kill';
    child.tell({ do: 'die', when: 'mid-add', count: act.count });
    const alone = await child.endsWithin(MOMENT_MS);
    child.signal('SIGKILL');
    await child.exited;
    return { said: `SIGKILL p${act.slot} ${alone ? 'mid-add' : 'any-time'}`, met: child.file };
  },
  'redis-kill': async ({ ms }, { store, fleet }) => {
    const forgotten = await store.kill(ms);
    if (forgotten > 0)
      fleet.accidents.push(
        `Redis forgot ${forgotten} writes that it had answered for (see --fsync): a loss of its own`,
      );
    return { said: `SIGKILL redis, back after ${ms} ms`, met: 'redis' };
  },
  'redis-stall': async ({ how, ms }, { store }) => {
    if (how === 'stop') {
      store.signal('SIGSTOP');
      await pause(ms);
      store.signal('SIGCONT');
    } else {
      const words =
        how === 'pause' ? ['CLIENT', 'PAUSE', String(ms), 'ALL'] : ['DEBUG', 'SLEEP', String(ms / 1000)];
      await store.control.call(words[0]!, ...words.slice(1)).catch(() => undefined);
      if (how === 'pause') await pause(ms);
    }
    await store.answers();
    return { said: `redis ${how} ${ms} ms`, met: 'redis' };
  },
  'client-kill': async ({ count, ms }, { store }) => {
    for (let i = 0; i < count; i++) {
      await store.control.call('CLIENT', 'KILL', 'TYPE', 'normal');
      await pause(ms);
    }
    return { said: `CLIENT KILL × ${count}`, met: 'redis' };
  },
  cut: async (act, world) => {
    const { line, name } = lineOf(act, world);
    const { fleet } = world;
    const cuts = () => fleet.at('proxy').figures.cuts;
    const before = cuts();
    const direction = act.how as 'up' | 'down';
    fleet.at('proxy').tell({ do: 'cut', line, direction, bytes: act.count });
    for (const end = performance.now() + act.ms; performance.now() < end && cuts() === before;)
      await pause(50);
    fleet.at('proxy').tell({ do: 'heal', line });
    return { said: `cut ${name} after ${act.count} B ${direction}`, met: metOf(act, world) };
  },
  delay: async (act, world) => {
    const { line, name } = lineOf(act, world);
    world.fleet.at('proxy').tell({ do: 'delay', line, ms: act.count });
    await pause(act.ms);
    world.fleet.at('proxy').tell({ do: 'heal', line });
    return { said: `${name} ${act.count} ms slow for ${act.ms} ms`, met: metOf(act, world) };
  },
  'half-open': async (act, world) => {
    const { line, name } = lineOf(act, world);
    const share = act.how === 'all' ? 1 : act.count / 100;
    world.fleet.at('proxy').tell({ do: 'half-open', line, share });
    await pause(act.ms);
    world.fleet.at('proxy').tell({ do: 'heal', line });
    return { said: `${name} half-open (${act.how}) ${act.ms} ms`, met: metOf(act, world) };
  },
  bandwidth: async (act, world) => {
    const { line, name } = lineOf(act, world);
    world.fleet.at('proxy').tell({ do: 'bandwidth', line, bytesPerSecond: act.count });
    await pause(act.ms);
    world.fleet.at('proxy').tell({ do: 'heal', line });
    return { said: `${name} ${act.count} B/s for ${act.ms} ms`, met: metOf(act, world) };
  },
  loss: silence,
  late: silence,
  'script-flush': async (_, { store }) => {
    await store.control.script('FLUSH');
    return { said: 'SCRIPT FLUSH', met: 'redis' };
  },
  'aof-cut': async ({ ms, count }, { store }) => {
    const forgets = await store.cutShort(ms, count);
    return { said: `SIGKILL redis, ${count} B of its file lost`, met: 'redis', forgets };
  },
  'full-memory': async ({ ms }, { store }) => {
    await store.control.config('SET', 'maxmemory', await store.info('memory', 'used_memory'));
    await pause(ms);
    await store.control.config('SET', 'maxmemory', '0');
    return { said: `maxmemory for ${ms} ms`, met: 'redis' };
  },
  'full-disk': async ({ ms }, { store }) => {
    store.limitFiles(1);
    await pause(ms);
    store.limitFiles('unlimited');
    await store.answers();
    return { said: `disk full for ${ms} ms`, met: 'redis' };
  },
  poison: async ({ slot }, { fleet }) => {
    await addSpecial(slot, 'poison', 0, fleet);
    return { said: 'a poison job', met: 'nobody' };
  },
  blocker: async ({ slot, ms }, { fleet }) => {
    await addSpecial(slot, 'blocker', ms, fleet);
    return { said: `a job that blocks ${ms} ms`, met: 'nobody' };
  },
};

/** Nothing arrives for a while on the connections that are open, then all of it. */
async function silence(act: Act, world: World): Promise<Done> {
  const { line, name } = lineOf(act, world);
  world.fleet.at('proxy').tell({ do: 'half-open', line, share: 1 });
  await pause(act.ms);
  world.fleet.at('proxy').tell({ do: 'heal', line });
  return { said: `${name} hears nothing for ${act.ms} ms`, met: metOf(act, world) };
}

/** The worker in this place, once it runs something that can be lost; not for ever, since there may be nothing to run. */
async function busyWorker({ slot }: Act, fleet: Fleet): Promise<Child> {
  const begun = performance.now();
  while (performance.now() < begun + VICTIM_MS) {
    const child = fleet.at('worker', slot);
    const isPatient = performance.now() < begun + MOMENT_MS;
    if (child.up && (child.figures.running > 0 || !isPatient)) return child;
    await pause(20);
  }
  throw new Error(`worker ${slot} was not up within ${VICTIM_MS} ms`);
}

/** Tells the producer in this place to add such a job, until one has done so: Redis may be away, or the producer killed. */
async function addSpecial(slot: number, kind: Kind, ms: number, fleet: Fleet): Promise<void> {
  for (const late = performance.now() + VICTIM_MS; performance.now() < late; await pause(20)) {
    const child = fleet.at('producer', slot);
    if (!child.up) continue;
    const { accepted } = child;
    child.tell({ do: 'add', kind, ms });
    for (const end = performance.now() + ADD_MS; performance.now() < end && child.alive;) {
      if (child.accepted > accepted) return;
      await pause(20);
    }
  }
  throw new Error(`producer ${slot} added no such job within ${VICTIM_MS} ms`);
}

function lineOf({ slot }: Act, { options }: World): { line: number; name: string } {
  const { workers } = options;
  return { line: slot, name: slot < workers ? `w${slot}` : `p${slot - workers}` };
}

function metOf({ slot }: Act, { fleet, options: { workers } }: World): string {
  return (slot < workers ? fleet.at('worker', slot) : fleet.at('producer', slot - workers)).file;
}
