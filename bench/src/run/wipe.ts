import type { Redis } from 'ioredis';

/** Everyone starts from an empty server that knows no script. */
export async function wipe(control: Redis): Promise<void> {
  await control.flushall('SYNC');
  await control.script('FLUSH', 'SYNC');
  await control.config('RESETSTAT');
}
