import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Subject } from 'rxjs';
import type { ScheduleOptions } from '#lib/decorators/schedule.decorator.js';
import type { QueueModuleOptions } from '#lib/options/module-options.js';
import { atEnd } from '../../support/cleanup.js';
import { collect, within, type WaitOptions } from '../../support/wait.js';
import type { TestRedis } from '../../support/redis.js';
import type { Ledger } from './ledger.js';

const CHILD = fileURLToPath(new URL('child.mjs', import.meta.url));
/** How long a test waits for a process that starts Node and Nest, perhaps beside many others. */
const START_MS = 120_000;

/** The plan of a process. It must be valid JSON. */
export interface AppPlan {
  readonly root: QueueModuleOptions;
  /** @default 'work' */
  readonly queue?: string;
  /** Concurrency of its processor. @default no processor */
  readonly concurrency?: number;
  /** Schedules of the handler. Each names the job it makes. */
  readonly schedules?: readonly (ScheduleOptions & { readonly name: string })[];
  /** File that gets one line at the start and one at the end of each run. */
  readonly ledger?: string;
  /** The behaviour of handlers, by job name: `{ work: 'sleep' }`. */
  readonly as?: Readonly<Record<string, string>>;
  /** URL of a module with further `deeds` and `verbs`. */
  readonly extras?: string;
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Options for Node. */
  readonly execArgv?: readonly string[];
}

/** A message of a process, and when it arrived by `performance.now()` of the receiver. */
type Said = Saying extends infer One ? One & { readonly at: number } : never;

type Saying =
  | { readonly kind: 'ready' }
  | { readonly kind: 'started'; readonly id: string; readonly attempt: number; readonly ms: number }
  | { readonly kind: 'ended'; readonly id: string }
  | { readonly kind: 'aborted'; readonly id: string; readonly reason: string }
  | { readonly kind: 'log'; readonly level: string; readonly text: string }
  | { readonly kind: 'link'; readonly role: string; readonly state: string; readonly text?: string }
  | { readonly kind: 'unhandled'; readonly text: string }
  | { readonly kind: 'event'; readonly type: string; readonly id?: string }
  | { readonly kind: 'gap'; readonly ms: number }
  | { readonly kind: 'answer'; readonly call: number; readonly value?: unknown; readonly error?: string };

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Starts an application and waits until it is up. The end of the test kills it if it still runs. */
export async function spawnApp(plan: AppPlan): Promise<AppProcess> {
  const app = new AppProcess(plan);
  await app.first('ready', () => true, { timeout: START_MS, what: () => `the process is up: ${app.output}` });
  return app;
}

/** A worker on the queue of the test. */
export function spawnWorker(
  redis: Pick<TestRedis, 'url' | 'prefix'>,
  ledger: Ledger,
  concurrency: number,
  root: QueueModuleOptions,
): Promise<AppProcess> {
  return spawnApp({
    root: { connection: redis.url, prefix: redis.prefix, ...root },
    concurrency,
    ledger: ledger.file(),
  });
}

export class AppProcess {
  readonly exited: Promise<Exit>;
  /** The text on its standard outputs. Empty if all is well. */
  output = '';
  private readonly child: ChildProcess;
  private readonly messages = new Subject<Said>();
  private readonly said = collect(this.messages);
  private calls = 0;

  constructor({ env = {}, execArgv = [], ...plan }: AppPlan) {
    const PLAN = JSON.stringify({ queue: 'work', ...plan });
    this.child = fork(CHILD, {
      env: { ...process.env, ...env, PLAN },
      execArgv: [...execArgv],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.child.on('message', (message: Saying) =>
      this.messages.next({ ...message, at: performance.now() } as Said),
    );
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
    this.exited = once(this.child, 'exit').then(([code, signal]) => ({ code, signal }) as Exit);
    atEnd(async () => {
      this.kill('SIGKILL');
      await this.exited;
      const unhandled = this.all('unhandled').map(({ text }) => text);
      const amiss = [this.output, ...unhandled].join('');
      if (amiss !== '') throw new Error(`a process of the test said what nobody expected:\n${amiss}`);
    });
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** All messages of one kind so far. */
  all<K extends Said['kind']>(kind: K): Extract<Said, { kind: K }>[] {
    return this.said.values.filter((one): one is Extract<Said, { kind: K }> => one.kind === kind);
  }

  /** The first message that matches. Waits for it. */
  first<K extends Said['kind']>(
    kind: K,
    match: (said: Extract<Said, { kind: K }>) => boolean = () => true,
    options: WaitOptions = {},
  ): Promise<Extract<Said, { kind: K }>> {
    return this.take(1, kind, match, options).then(([one]) => one!);
  }

  async take<K extends Said['kind']>(
    n: number,
    kind: K,
    match: (said: Extract<Said, { kind: K }>) => boolean = () => true,
    options: WaitOptions = {},
  ): Promise<Extract<Said, { kind: K }>[]> {
    const isIt = (one: Said) => one.kind === kind && match(one as Extract<Said, { kind: K }>);
    const what = () =>
      `${n} × '${kind}' of a process that said ${JSON.stringify(this.said.values.slice(-5))}`;
    return (await this.said.take(n, isIt, { timeout: 15_000, what, ...options })) as Extract<
      Said,
      { kind: K }
    >[];
  }

  /**
   * Calls a verb in the process: `add(name, data, options)`, `get(id)`, `start()`, `state()`, `release()` of held
   * jobs, and those that the `extras` of its plan add.
   */
  call(verb: string, ...args: unknown[]): Promise<any> {
    return this.ask({}, verb, ...args);
  }

  /** As `call`, for verbs that take long. */
  async ask(options: WaitOptions, verb: string, ...args: unknown[]): Promise<any> {
    const call = ++this.calls;
    if (!this.child.connected) throw new Error(`${verb} of a process that has ended`);
    this.child.send({ call, verb, args });
    const { value, error } = await this.first('answer', (answer) => answer.call === call, options);
    if (error !== undefined) throw new Error(`${verb} in the process: ${error}`);
    return value;
  }

  /** Closes the application and leaves the process alone. It must end when nothing keeps it. */
  close(): void {
    this.child.send({ call: 0, verb: 'close', args: [] });
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  exit(options: WaitOptions = {}): Promise<Exit> {
    return within(this.exited, { timeout: 20_000, what: 'the process ends', ...options });
  }
}
