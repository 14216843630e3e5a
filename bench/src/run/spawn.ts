import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Message, Order } from './order.js';

const CHILD = fileURLToPath(new URL('./child.js', import.meta.url));

/** A process that is silent for this long hangs. */
const SILENCE_MS = 60_000;

/** Runs one order in a process of its own and resolves with the figures. Rejects if the process fails or hangs. */
export function spawnOrder(
  order: Order,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<Record<string, number>> {
  return new Promise((resolve, reject) => {
    // Logs of a contender go to stderr, because stdout is for the table.
    const child = fork(CHILD, [JSON.stringify(order)], {
      stdio: ['ignore', 2, 2, 'ipc'],
      signal,
      killSignal: 'SIGKILL',
    });
    let figures: Record<string, number> | undefined;
    let last = 'it had said nothing';

    const hung = (): void => {
      child.kill('SIGKILL');
      reject(new Error(`no progress for ${SILENCE_MS / 1000} s; ${last}`));
    };
    let watchdog = setTimeout(hung, SILENCE_MS);

    child.on('message', (message: Message) => {
      clearTimeout(watchdog);
      watchdog = setTimeout(hung, SILENCE_MS);
      if (message.kind === 'figures') {
        figures = message.figures;
        return;
      }
      last = `${message.done} of ${message.total} were done`;
      onProgress(message.done / message.total);
    });
    child.on('error', reject);
    child.on('exit', (code, killedBy) => {
      clearTimeout(watchdog);
      if (figures !== undefined && code === 0) resolve(figures);
      else reject(new Error(`the process ended with ${killedBy ?? `code ${code}`}; ${last}`));
    });
  });
}
