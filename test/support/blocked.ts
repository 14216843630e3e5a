import type { TestRedis } from './redis.js';
import { until } from './wait.js';

/** Resolves when a client of the test is blocked at a bell and Redis has read what is to be done behind that. */
export async function exchangeWaits({ prefix, admin }: TestRedis): Promise<void> {
  const blocked = new RegExp(`name=godwit:${prefix}:blocking .*flags=b .*qbuf=[1-9]`);
  await until(async () => blocked.test(String(await admin.client('LIST'))));
}
