export interface StartRedisOptions {
  /**
   * Starts a separate server for tests: REDIS_URL is ignored, nothing is written to disk, and `DEBUG` is
   * allowed for local clients. GODWIT_TEST_REDIS_SERVER may name another server program than `redis-server`
   * or `valkey-server` on PATH.
   * @default false: the server of REDIS_URL if it is set, otherwise a new server that keeps its data on disk
   */
  readonly private?: boolean;
  /** Do not print why a server could not be installed; the error says how to get one. @default false */
  readonly quiet?: boolean;
  /** Further server options, which override the default ones: `['--maxmemory', '50mb']`. */
  readonly args?: readonly string[];
  /** Further environment variables of the server. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * The folder of the server's files, which `stop()` keeps. @default a new temporary folder, removed by
   * `stop()`
   */
  readonly dir?: string;
  /** @default a free one below those given to outgoing connections */
  readonly port?: number;
}

/** A running server, bound to 127.0.0.1. It ends when this program ends, even if this program is killed. */
export interface RunningRedis {
  readonly url: string;
  readonly port: number;
  /**
   * Process id of the server, for signals such as SIGSTOP; undefined if REDIS_URL is used. Changes with
   * `restart()`.
   */
  readonly pid: number | undefined;
  /** Folder of the server; undefined if REDIS_URL is used. `redis.log` in it is the log of the server. */
  readonly dir: string | undefined;
  /**
   * Ends the server and removes its temporary folder. May be called twice. Does nothing if REDIS_URL is used.
   */
  stop(): Promise<void>;
  /** Sends SIGKILL, and waits until the process is gone. Files and port are kept for `restart()`. */
  kill9(): Promise<void>;
  /** Starts the server again with the same port, options and files. A running server is shut down first. */
  restart(): Promise<void>;
}

/**
 * Starts a Redis and resolves when it answers. If no server program is on PATH, it installs one with apt-get
 * (on Debian or Ubuntu, as root or with passwordless sudo). If it cannot, it rejects with a message that says
 * how to get one.
 */
export function startRedis(options?: StartRedisOptions): Promise<RunningRedis>;
