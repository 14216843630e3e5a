/** The settings of an installation, read from the environment at each start. */
export class Settings {
  /** REDIS_URL: the URL of Redis, or `memory`. @default memory */
  readonly connection: string;
  /** QUEUE_PREFIX: first part of every key in Redis. */
  readonly prefix: string;
  readonly port: number;
  /** PROBES_PORT: port of a worker for probes and metrics; 0 takes a free one. */
  readonly probesPort: number;
  /** DASHBOARD_PASSWORD: the password of the user `ops`. */
  readonly password: string;

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.connection = env.REDIS_URL ?? 'memory';
    this.prefix = env.QUEUE_PREFIX ?? 'sample-operations';
    this.port = Number(env.PORT ?? 3000);
    this.probesPort = Number(env.PROBES_PORT ?? 0);
    this.password = env.DASHBOARD_PASSWORD ?? 'ops';
  }

  /** Jobs in memory cannot be shared with other processes. */
  get isInMemory(): boolean {
    return this.connection === 'memory';
  }
}
