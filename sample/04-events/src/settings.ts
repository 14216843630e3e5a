/** What differs from one installation to the next, read from the environment at each start. */
export class Settings {
  /** REDIS_URL */
  readonly redisUrl: string;
  /** QUEUE_PREFIX: starts every key in Redis. */
  readonly prefix: string;

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.redisUrl = env.REDIS_URL ?? 'redis://localhost:6379';
    this.prefix = env.QUEUE_PREFIX ?? 'sample-events';
  }
}
