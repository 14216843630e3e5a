export interface StartRedisOptions {
  /**
   * A server of our own, for tests: REDIS_URL is ignored, nothing is written to disk, `DEBUG` is allowed from here.
   * GODWIT_TEST_REDIS_SERVER names another server program than `redis-server` or `valkey-server` on PATH.
   * @default false: REDIS_URL is used as it is where it is set, else a server that keeps its data on disk
   */
  readonly private?: boolean;
  /** Do not print why a server could not be installed; the error tells how to get one. @default false */
  readonly quiet?: boolean;
  /** Further server options, which win over ours: `['--maxmemory', '50mb']`. */
  readonly args?: readonly string[];
  /** Further variables of its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Where the server keeps its files; it stays after `stop()`. @default a new temporary folder, removed by `stop()` */
  readonly dir?: string;
  /** @default a free one below those given to outgoing connections */
  readonly port?: number;
}

/** A running server, bound to 127.0.0.1. It ends with this program, however this program ends. */
export interface RunningRedis {
  readonly url: string;
  readonly port: number;
  /** Of the server process, for signals such as SIGSTOP; undefined where REDIS_URL is used. Changes with `restart()`. */
  readonly pid: number | undefined;
  /** Its folder; undefined where REDIS_URL is used. The server's log is `redis.log` in it. */
  readonly dir: string | undefined;
  /** Ends the server and removes its temporary folder. Safe twice. Where REDIS_URL is used it does nothing. */
  stop(): Promise<void>;
  /** SIGKILL, and waits until the process is gone. Its files stay, and so does its port for `restart()`. */
  kill9(): Promise<void>;
  /** Starts it again with the same port, options and files; ends it in good order first if it runs. */
  restart(): Promise<void>;
}

/**
 * Brings up a Redis and resolves once it answers. Where no server program is on PATH it is installed with apt-get, on
 * Debian or Ubuntu as root or with passwordless sudo; else it rejects with a text that says how to get one.
 */
export function startRedis(options?: StartRedisOptions): Promise<RunningRedis>;
