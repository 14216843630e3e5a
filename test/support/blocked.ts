import type { TestRedis } from './redis.js';
import { until } from './wait.js';

/** Resolves when a client of the test blocks on a doorbell; commands that it sent after that wait too. */
export async function isBlocked({ prefix, admin }: TestRedis): Promise<void> {
  // Mutation tests run the command under its second name.
  const blocked = new RegExp(`name=(godwit:${prefix}:|patched-)blocking .*flags=b`);
  await until(async () => blocked.test(String(await admin.client('LIST'))));
}
