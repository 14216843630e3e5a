/** The settings of an installation, read from the environment at each start. */
export class Settings {
  /** REDIS_URL: the URL of Redis, or `memory`. @default memory */
  readonly connection: string;
  /** QUEUE_PREFIX: first part of every key in Redis. */
  readonly prefix: string;

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.connection = env.REDIS_URL ?? 'memory';
    this.prefix = env.QUEUE_PREFIX ?? 'sample-events';
  }
}
