import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { main } from '#lib/subpaths/cli/main.js';
import { atEnd } from '../support/cleanup.js';
import type { TestRedis } from '../support/redis.js';
import { ROOT } from '../support/sources.js';
import { until, within } from '../support/wait.js';

const CLI = join(ROOT, 'dist/subpaths/cli.js');
/** How long a test waits for a process that starts Node, perhaps beside many others. */
const PATIENCE_MS = 30_000;

/** Runs the built command. The end of the test kills it if it still runs then. */
export function godwit(
  args: readonly string[],
  stdio: StdioOptions = ['ignore', 'pipe', 'pipe'],
  nodeOptions: readonly string[] = [],
): Command {
  return new Command(spawn(process.execPath, [...nodeOptions, CLI, ...args], { stdio }));
}

/** Runs a verb of the command on the Redis and the prefix of a test. */
export function godwitOn({ url, prefix }: Pick<TestRedis, 'url' | 'prefix'>, ...words: string[]): Command {
  return godwit([words[0]!, '-u', url, '--prefix', prefix, ...words.slice(1)]);
}

/** The exit code of a command, and its output. */
export interface Ended {
  readonly code: unknown;
  readonly out: string;
  readonly err: string;
}

/** Of one that ran in this process. */
interface Ran extends Ended {
  readonly code: number;
}

/**
 * Runs the command line of the built package in this process, which saves the start of Node. Only one at a time. For signals,
 * input, colours, warnings and the end of the process itself use `godwit`.
 */
export async function runHere(args: readonly string[]): Promise<Ran> {
  const said = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((stream) =>
    vi.spyOn(process[stream], 'write').mockImplementation((text) => {
      said[stream] += String(text);
      return true;
    }),
  );
  try {
    const code = await main([...args]);
    return { code, out: said.stdout, err: said.stderr };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** Runs a verb of the command in this process, on the Redis and the prefix of a test. */
export function runOn(
  { url, prefix }: Pick<TestRedis, 'url' | 'prefix'>,
  ...[name, ...words]: string[]
): Promise<Ran> {
  return runHere([name!, '-u', url, '--prefix', prefix, ...words]);
}

/** The exit code and the JSON of a command. It printed nothing to the error output. */
export function jsonOf({ code, out, err }: Ended) {
  expect(err).toBe('');
  return { code, json: JSON.parse(out) as unknown };
}

export class Command {
  out = '';
  err = '';
  private readonly closed: Promise<[number | null, string | null]>;
  private readonly exited: Promise<[number | null, string | null]>;

  constructor(private readonly child: ChildProcess) {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.out += text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.err += text));
    this.exited = once(child, 'exit') as typeof this.exited;
    // It comes after the last output. 'exit' may come before it.
    this.closed = once(child, 'close') as typeof this.closed;
    atEnd(async () => {
      this.kill('SIGKILL');
      child.stdout?.resume();
      await this.closed;
    });
  }

  get stdout() {
    return this.child.stdout!;
  }

  /** Resolves once its standard output or its error output matches. */
  said(match: RegExp, where: 'out' | 'err' = 'out'): Promise<string> {
    return until(() => match.exec(this[where])?.[0], {
      timeout: PATIENCE_MS,
      what: () => `${String(match)} in ${where}: ${JSON.stringify([this.out, this.err])}`,
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Its exit code, or the signal that ended it. All output has arrived by then. */
  ended(): Promise<number | string | null> {
    return this.after(this.closed);
  }

  /** Waits for its end. Returns its exit code and all output. */
  async result(): Promise<Ended> {
    const code = await this.ended();
    return { code, out: this.out, err: this.err };
  }

  /** Asks it to end. Returns its exit code and how many ms that took. */
  async end(signal: NodeJS.Signals): Promise<{ readonly code: unknown; readonly ms: number }> {
    const since = performance.now();
    this.kill(signal);
    const code = await this.after(this.exited);
    return { code, ms: performance.now() - since };
  }

  private async after(end: Promise<[number | null, string | null]>): Promise<number | string | null> {
    const [code, signal] = await within(end, {
      timeout: PATIENCE_MS,
      what: `the command ends: ${JSON.stringify([this.out, this.err])}`,
    });
    return code ?? signal;
  }
}
