import { fork, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { atEnd } from '../support/cleanup.js';
import type { TestRedis } from '../support/redis.js';
import { until } from '../support/wait.js';

const ROOT = join(import.meta.dirname, '../..');
const PATIENT = { timeout: 30_000 };

/** The library of the working tree, as built. */
export const CURRENT = join(ROOT, 'dist/index.js');

/** Unpacks a version inside of the repository, so that it finds the installed peers. */
export function unpack(tarball: string): { entry: string; remove: () => void } {
  mkdirSync(join(ROOT, '.tmp'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, '.tmp/version-'));
  const { status, stderr } = spawnSync('tar', ['-xzf', join(import.meta.dirname, tarball), '-C', folder], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${tarball} cannot be unpacked: ${stderr}`);
  return {
    entry: join(folder, 'package/dist/index.js'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

interface Message {
  readonly answer?: number;
  readonly value?: unknown;
  readonly error?: string;
  readonly ready?: true;
  readonly begun?: string;
  readonly ran?: string;
  readonly event?: string;
  readonly id?: string;
}

/** A process that works on the queue `work` with one version. */
export class VersionProcess {
  /** Ids of the jobs that it has begun, and of those that it has completed. */
  readonly begun: string[] = [];
  readonly ran: string[] = [];
  /** `type id` of the events that it got. */
  readonly events: string[] = [];
  private readonly calls = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  private asked = 0;
  private isReady = false;
  private isOver = false;

  private constructor(private readonly child: ChildProcess) {
    child.on('message', (message) => this.hear(message as Message));
    child.on('exit', () => {
      this.isOver = true;
      for (const call of this.calls.values()) call.reject(new Error('the process has ended'));
    });
  }

  static async start(
    entry: string,
    names: readonly string[],
    { url, prefix }: TestRedis,
  ): Promise<VersionProcess> {
    const plan = JSON.stringify({ entry: pathToFileURL(entry).href, url, prefix, names });
    const child = fork(join(import.meta.dirname, 'app.mjs'), [plan], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const started = new VersionProcess(child);
    atEnd(async () => {
      if (!started.isOver) await started.stop();
    });
    await until(() => started.isReady || started.isOver, PATIENT);
    if (started.isOver) throw new Error('the process ended before it was ready');
    return started;
  }

  /** A call of `queue`, `schedules`, `dead` or `inspector`: its answer as JSON has it. */
  ask<T = any>(target: string, method: string, ...args: unknown[]): Promise<T> {
    const ask = ++this.asked;
    return new Promise<T>((resolve, reject) => {
      this.calls.set(ask, { resolve: resolve as (value: unknown) => void, reject });
      this.child.send({ ask, target, method, args });
    });
  }

  /** It stops as in a deployment: running jobs end, and the others are given back. */
  async stop(): Promise<void> {
    await this.ask('', 'close');
    await until(() => this.isOver, PATIENT);
  }

  private hear(message: Message): void {
    const call = message.answer === undefined ? undefined : this.calls.get(message.answer);
    if (message.answer !== undefined) this.calls.delete(message.answer);
    if (message.ready) this.isReady = true;
    else if (message.begun !== undefined) this.begun.push(message.begun);
    else if (message.ran !== undefined) this.ran.push(message.ran);
    else if (message.event !== undefined) this.events.push(`${message.event} ${message.id}`);
    else if (message.error !== undefined) call?.reject(new Error(message.error));
    else call?.resolve(message.value);
  }
}
