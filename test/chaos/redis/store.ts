import { spawnSync } from 'node:child_process';
import { readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { findServer } from '../../../tools/redis/binary.mjs';
import { monotonicMs } from '../../history/recorder.js';
import { startRedis, type RunningRedis } from '../../../tools/redis.mjs';

const WRAPPER = fileURLToPath(new URL('../../../test/chaos/redis/server.sh', import.meta.url));

/** A key of no queue that is written at the moment of a kill. Whether the write survives depends on Redis alone. */
const CANARY = 'chaos:canary';
/** Least bytes of such a write in the append-only file. */
const CANARY_BYTES = 30;
/** Loading a large append-only file takes a while. */
const ANSWER_MS = 120_000;

/** The Redis of a run, with an append-only file, and its faults. */
export class Store {
  /** The controller's own connection, without a proxy. It may fail while Redis is broken. */
  readonly control: Redis;

  private constructor(private readonly server: RunningRedis) {
    this.control = new Redis(server.url, {
      connectionName: 'chaos-control',
      maxRetriesPerRequest: 1,
      enableOfflineQueue: false,
      commandTimeout: 3_000,
      retryStrategy: () => 50,
      protocol: 2,
    });
    this.control.on('error', () => {});
  }

  static async start(dir: string, fsync: string): Promise<Store> {
    // Started so that a full disk is an error, as on a real one, and not a signal.
    process.env['CHAOS_REDIS_SERVER'] = findServer({ forTests: true });
    process.env['GODWIT_TEST_REDIS_SERVER'] = WRAPPER;
    const args = ['--appendonly', 'yes', '--appendfsync', fsync];
    const store = new Store(await startRedis({ private: true, dir, args }));
    await store.answers();
    return store;
  }

  get url(): string {
    return this.server.url;
  }

  /** Returns how many acknowledged writes are lost, without those that a fault removed. */
  async kill(downMs: number): Promise<number> {
    const counted = this.countUp();
    await this.server.kill9();
    const answered = await counted;
    await pause(downMs);
    await this.server.restart();
    await this.answers();
    const kept = Number(await this.control.getdel(CANARY));
    return Math.max(0, answered - kept);
  }

  /**
   * SIGKILL and a cut append-only file, like a power failure before the disk has the data. Returns the times, on the
   * monotonic clock of the machine, between which acknowledged writes may be lost; all others are kept.
   */
  async cutShort(downMs: number, bytes: number): Promise<{ from: number; to: number }> {
    const begun: number[] = [];
    let isEnough!: () => void;
    const enough = new Promise<void>((resolve) => (isEnough = resolve));
    const counted = this.countUp((nth) => {
      begun[nth] = monotonicMs();
      // At least one of these writes must be kept, because it shows which others were.
      if (nth * CANARY_BYTES > bytes) isEnough();
    });
    await Promise.race([enough, counted]);
    await this.server.kill9();
    const to = monotonicMs();
    await counted;
    const file = this.latestAppendOnlyFile();
    truncateSync(file, Math.max(0, statSync(file).size - bytes));
    await pause(downMs);
    await this.server.restart();
    await this.answers();
    const kept = Number(await this.control.getdel(CANARY));
    await this.rewriteAppendOnlyFile();
    const from = begun[kept];
    if (from === undefined) throw new Error('no write is known to be kept');
    return { from, to };
  }

  private latestAppendOnlyFile(): string {
    const files = readdirSync(this.server.dir!, { recursive: true, encoding: 'utf8' });
    const numberOf = (name: string) => Number(/(\d+)\.incr\.aof$/.exec(name)?.[1] ?? -1);
    return join(this.server.dir!, files.toSorted((a, b) => numberOf(a) - numberOf(b)).at(-1)!);
  }

  /**
   * See docs/operating/durability.md: Redis may have left a MULTI without its EXEC at the end of the file. Later writes
   * become part of that transaction at the next start, so half of a script would take effect.
   */
  private async rewriteAppendOnlyFile(): Promise<void> {
    await this.control.bgrewriteaof();
    for (const end = performance.now() + ANSWER_MS; performance.now() < end; await pause(20)) {
      const isRunning = await this.info('persistence', 'aof_rewrite_in_progress');
      const isScheduled = await this.info('persistence', 'aof_rewrite_scheduled');
      if (isRunning === '0' && isScheduled === '0') return;
    }
    throw new Error(`Redis did not rewrite its append-only file within ${ANSWER_MS} ms`);
  }

  /** Writes until an error; returns the last acknowledged number. */
  private async countUp(next: (nth: number) => void = () => undefined): Promise<number> {
    for (let last = 0; ;) {
      next(last + 1);
      try {
        last = await this.control.incr(CANARY);
      } catch {
        return last;
      }
    }
  }

  /** Stops the server in good order and starts it from its append-only file. */
  async restart(): Promise<void> {
    await this.server.restart();
    await this.answers();
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.server.pid!, signal);
  }

  /** From now on no file may grow beyond `bytes`, until this is undone: writes fail like on a full disk. */
  limitFiles(bytes: number | 'unlimited'): void {
    // The hard limit stays, so that the soft one can be raised again without root.
    const limit = `--fsize=${bytes}:`;
    const { status, stderr } = spawnSync('prlimit', ['--pid', String(this.server.pid), limit], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`prlimit failed: ${stderr}`);
  }

  /** A field of `INFO`. */
  async info(section: string, field: string): Promise<string> {
    const text = await this.control.info(section);
    return new RegExp(`^${field}:(.*?)\r?$`, 'm').exec(text)?.[1] ?? '';
  }

  /** Waits until it answers, and all pending writes are in its file. */
  async answers(): Promise<void> {
    for (const end = performance.now() + ANSWER_MS; performance.now() < end; await pause(20)) {
      try {
        const status = await this.info('persistence', 'aof_last_write_status');
        // ioredis sends INFO even before the connection is ready for other commands.
        if (status === 'ok' && this.control.status === 'ready') return;
      } catch {
        // Not yet.
      }
    }
    throw new Error(`Redis did not answer within ${ANSWER_MS} ms of its fault`);
  }

  async stop(): Promise<void> {
    this.control.disconnect();
    await this.server.stop();
  }
}
