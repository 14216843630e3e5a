import type { TestRedis } from './redis.js';
import { until } from './wait.js';

/** Resolves when a client of the test is blocked at a bell; what it has sent behind that waits too. */
export async function isBlocked({ prefix, admin }: TestRedis): Promise<void> {
  // Under the second name where the specs run against mutants.
  const blocked = new RegExp(`name=(godwit:${prefix}:|patched-)blocking .*flags=b`);
  await until(async () => blocked.test(String(await admin.client('LIST'))));
}
