import { existsSync, readFileSync } from 'node:fs';

const SCHEDSTAT = '/proc/self/schedstat';

/** How long the main thread of this process has been ready to run and was not scheduled. Only Linux tells it. */
function starvedMs(): number {
  if (!existsSync(SCHEDSTAT)) return 0;
  return Number(readFileSync(SCHEDSTAT, 'utf8').split(' ')[1]) / 1_000_000;
}

/** How long an act takes, how much of that time this process was not scheduled, and the error that the act ends with. */
export async function timed(act: () => Promise<unknown>) {
  const [since, starvedBefore] = [performance.now(), starvedMs()];
  const error = await act().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { error, ms: performance.now() - since, starvedMs: starvedMs() - starvedBefore };
}
