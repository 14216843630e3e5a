import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Violation } from '#lib/job/audit-report.js';
import type { JobCounts } from '#lib/job/job-state.js';
import type { QueueModuleOptions, QueueOptions } from '#lib/options/module-options.js';
import { atEnd } from '../support/cleanup.js';
import { until, within } from '../support/wait.js';
import { History } from './history.js';

/** The groups of a queue that has groups. */
export const TENANT_COUNT = 40;
/** A queue with everything that holds jobs back: groups, a key for each job, a concurrency and a rate. */
export const TENANTS: QueueOptions = {
  name: 'tenants',
  durability: 'replicated',
  limits: { concurrency: 10, rate: { max: 500, per: '1s' } },
  groups: { concurrency: 1 },
};
const PROGRAM = fileURLToPath(new URL('load.mjs', import.meta.url));

interface LoadPlan {
  readonly root: QueueModuleOptions;
  readonly queues: readonly QueueOptions[];
  /** Adds to each queue. Jobs of a queue with groups get a group and a key. @default 300 */
  readonly perSecond?: number;
  /** Words before the command, to run it elsewhere: `['ip', 'netns', 'exec', 'a']`. */
  readonly before?: readonly string[];
}

/** The report of the application at its end. */
export interface Finish {
  readonly isDrained: boolean;
  readonly violations: readonly Violation[];
  readonly counts: readonly JobCounts[];
  /** Keys of ended jobs that are still in use. */
  readonly stuckKeys: number;
  /** Groups and slots that are left when no job is. */
  readonly stuckGroups: readonly object[];
  readonly unhandled: readonly string[];
  readonly complaints: readonly string[];
}

/**
 * An application in a process of its own that adds and works until it is told to finish. Killed at the end of the test.
 */
export class Load {
  private readonly dir = mkdtempSync(join(tmpdir(), 'godwit-failover-'));
  private readonly ledger = join(this.dir, 'ledger');
  private readonly child: ChildProcess;
  private readonly exited: Promise<unknown>;
  private output = '';
  private readonly said: { kind: string; text?: string }[] = [];

  private constructor({ before = [], perSecond = 300, ...plan }: LoadPlan) {
    const [command, ...args] = [...before, process.execPath, PROGRAM];
    this.child = spawn(command!, args, {
      env: {
        ...process.env,
        PLAN: JSON.stringify({ ...plan, perSecond, tenants: TENANT_COUNT, ledger: this.ledger }),
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.child.on('message', (message) => this.said.push(message as { kind: string }));
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
    this.exited = once(this.child, 'exit');
    atEnd(async () => {
      this.child.kill('SIGKILL');
      await this.exited;
      rmSync(this.dir, { recursive: true, force: true });
    });
  }

  /** Resolves when it adds and works. */
  static async start(plan: LoadPlan): Promise<Load> {
    const load = new Load(plan);
    await load.hear('ready', 30_000);
    await until(() => load.history().count('E') > 100, { timeout: 20_000, what: 'the load runs' });
    return load;
  }

  history(): History {
    return new History(readFileSync(this.ledger, 'utf8'));
  }

  /** Stops adding, waits until every job is done and the connections are closed, and returns the standard output. */
  async finish(): Promise<Finish> {
    this.child.send('finish');
    const finish = await this.hear('finished', 120_000);
    this.child.send('close');
    await within(this.exited, { timeout: 40_000, what: 'the process ends' });
    if (this.output !== '') throw new Error(`the process of the load said:\n${this.output}`);
    return finish as unknown as Finish;
  }

  private async hear(kind: string, timeout: number): Promise<object> {
    return until(
      () => {
        const failed = this.said.find((one) => one.kind === 'failed');
        if (failed || this.child.exitCode !== null) throw new Error(failed?.text ?? this.output);
        return this.said.find((one) => one.kind === kind);
      },
      { timeout, what: () => `the load is ${kind}: ${this.output}` },
    );
  }
}
