import { randomBytes } from 'node:crypto';
import { Global, Module } from '@nestjs/common';

/** The settings of an installation, read from the environment once. */
export class Settings {
  /** REDIS_URL: the URL of Redis, or `memory`. @default memory */
  readonly connection: string;
  /** QUEUE_PREFIX: first part of every key in Redis. */
  readonly prefix: string;
  /** WEBHOOK_SECRET: `whsec_` and base64, shared with the receiver. @default generated at each start */
  readonly secret: string;
  /** WEBHOOK_ALLOW: private addresses that may be called nevertheless, separated by commas. See `AddressGuard.allow`. */
  readonly allow: readonly string[];

  /** HOSTS: host names of the page and the API, in addition to localhost and IP addresses, separated by commas. */
  readonly hosts: readonly string[];

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.connection = env.REDIS_URL ?? 'memory';
    this.prefix = env.QUEUE_PREFIX ?? 'sample-webhooks';
    this.secret = env.WEBHOOK_SECRET ?? `whsec_${randomBytes(24).toString('base64')}`;
    this.allow = listIn(env.WEBHOOK_ALLOW);
    this.hosts = listIn(env.HOSTS?.toLowerCase());
  }
}

function listIn(text = ''): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

@Global()
@Module({
  providers: [{ provide: Settings, useFactory: () => new Settings() }],
  exports: [Settings],
})
export class SettingsModule {}
