import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LedgerWriter } from './ledger/writer.js';
import type { ChildPlan, Figures, Said, Told } from './plan.js';

export type Role = 'worker' | 'producer' | 'watcher' | 'proxy';

const NOTHING: Figures = { added: 0, completed: 0, running: 0, rss: 0, cuts: 0 };
const START_MS = 60_000;
const STOP_MS = 20_000;

/** One process, from its start to its end. */
export class Child {
  readonly ready: Promise<Extract<Said, { say: 'ready' }>>;
  readonly exited: Promise<void>;
  readonly audits: Extract<Said, { say: 'audited' }>[] = [];
  /** Jobs that it was told to add and has added. */
  accepted = 0;
  /** It has recorded what happened to the jobs of the mixed queues. */
  looked = false;
  /** It has reported that its work is done. */
  done = false;
  figures: Figures = NOTHING;
  alive = true;
  /** It has reported that it is ready, and has not ended. */
  up = false;
  /** Why it is expected to end; an end without a reason is a violation. */
  doom: string | undefined;
  private readonly process: ChildProcess;

  constructor(
    readonly role: Role,
    readonly slot: number,
    readonly file: string,
    plan: ChildPlan,
    ended: (child: Child, how: string) => void,
  ) {
    const output = openSync(`${plan.ledger}.txt`, 'a');
    this.process = fork(fileURLToPath(new URL(`./children/${role}.js`, import.meta.url)), {
      env: { ...process.env, PLAN: JSON.stringify(plan) },
      stdio: ['ignore', output, output, 'ipc'],
    });
    this.ready = new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${file} did not start in time`)), START_MS).unref();
      this.process.on('message', (said: Said) => {
        if (said.say === 'figures') this.figures = said.figures;
        else if (said.say === 'done') this.done = true;
        else if (said.say === 'looked') this.looked = true;
        else if (said.say === 'accepted') this.accepted += 1;
        else if (said.say === 'audited') this.audits.push(said);
        else {
          clearTimeout(late);
          this.up = true;
          resolve(said);
        }
      });
    });
    // A process that is killed before it is up is replaced, and the wait is for its replacement.
    this.ready.catch(() => undefined);
    this.exited = once(this.process, 'exit').then(([code, signal]) => {
      this.alive = false;
      this.up = false;
      this.figures = { ...this.figures, running: 0, rss: 0 };
      ended(this, String(signal ?? `code ${code}`));
    });
  }

  get pid(): number {
    return this.process.pid!;
  }

  tell(told: Told): void {
    if (this.alive && this.process.connected) this.process.send(told, () => undefined);
  }

  signal(signal: NodeJS.Signals): void {
    if (this.alive) this.process.kill(signal);
  }

  /** Resolves with whether it has ended in this time. */
  async endsWithin(ms: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, ms)));
    await Promise.race([this.exited, late]);
    clearTimeout(timer);
    return !this.alive;
  }
}

interface FleetPlan {
  readonly dir: string;
  readonly nemesis: LedgerWriter;
  /** The plan of the next process in this place. */
  readonly planFor: (role: Role, slot: number) => Omit<ChildPlan, 'ledger'>;
}

/** All processes of a run, each in its place. A process that ends is replaced until the run stops. */
export class Fleet {
  readonly places = new Map<string, Child>();
  /** All processes so far. */
  readonly children: Child[] = [];
  /** Unexpected ends. */
  readonly accidents: string[] = [];
  private stopping = false;

  constructor(private readonly plan: FleetPlan) {}

  start(role: Role, slot: number): Child {
    const plan = this.plan.planFor(role, slot);
    const file = `${role}-${slot}.${this.children.length}`;
    const ledger = join(this.plan.dir, file);
    const child = new Child(role, slot, file, { ...plan, ledger }, (ended, how) => this.ended(ended, how));
    this.places.set(`${role} ${slot}`, child);
    this.children.push(child);
    return child;
  }

  at(role: Role, slot = 0): Child {
    return this.places.get(`${role} ${slot}`)!;
  }

  all(role: Role): Child[] {
    return [...this.places.values()].filter((child) => child.role === role);
  }

  sum(role: Role, figure: keyof Figures): number {
    let sum = 0;
    for (const child of this.children) if (child.role === role) sum += child.figures[figure];
    return sum;
  }

  /**
   * Ends all processes of a role in good order. Those that do not end in time are killed, which counts as an unexpected
   * end.
   */
  async stop(role: Role): Promise<void> {
    this.stopping = true;
    await Promise.all(
      this.all(role).map(async (child) => {
        child.doom ??= 'stop';
        child.signal('SIGTERM');
        if (await child.endsWithin(STOP_MS)) return;
        this.accidents.push(`${child.file} did not stop within ${STOP_MS} ms of its SIGTERM`);
        child.signal('SIGKILL');
        await child.exited;
      }),
    );
  }

  async killAll(): Promise<void> {
    this.stopping = true;
    for (const child of this.places.values()) {
      child.doom ??= 'stop';
      child.signal('SIGKILL');
    }
    await Promise.all([...this.places.values()].map((child) => child.exited));
  }

  private ended(child: Child, how: string): void {
    const { nemesis } = this.plan;
    nemesis.write(`D ${child.file} ${nemesis.now()} ${(child.doom ?? how).replaceAll(' ', '-')}\n`);
    // A worker may be killed by a poison job, which only its ledger shows.
    const isPoisoned = child.role === 'worker' && how === 'SIGKILL';
    const isDone = child.role === 'producer' && child.done;
    if (child.doom === undefined && !isPoisoned) this.accidents.push(`${child.file} ended by ${how}`);
    if (!this.stopping && !isDone) this.start(child.role, child.slot);
  }
}
