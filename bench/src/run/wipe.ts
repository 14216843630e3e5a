import type { Redis } from 'ioredis';

/** Each measurement starts on an empty server without cached scripts. */
export async function wipe(control: Redis): Promise<void> {
  await control.flushall('SYNC');
  await control.script('FLUSH', 'SYNC');
  await control.config('RESETSTAT');
}
