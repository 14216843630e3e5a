import { DispatchLoop } from '../dispatcher/dispatch-loop.js';
import { openTasks, type OpenTasks } from '../engine/open-tasks.js';
import { isPassing, repeatDelay, within } from '../contract/retry.js';
import { GodwitError, RedisRefusedError } from '../errors.js';
import type { RedisConnection } from '../options/connection.js';
import { BackOff } from './back-off.js';
import type { DispatchOptions } from './dispatch-options.js';
import { LinkNews } from './link-news.js';
import type { Output } from './output.js';
import { Table } from './table.js';

/** A call that is not answered in this time is taken for a silent socket, whose connection is made anew. */
const CALL_MS = 2_000;
/** How long a call that is on its way, and then the connection, may take to end: together less than a second. */
const END_MS = 300;

/** Moves tasks until the signal; answers the exit code. */
export async function runDispatch(
  options: DispatchOptions,
  output: Output,
  signal: AbortSignal,
): Promise<number> {
  const complain = (text: string) => output.complain(`godwit dispatch: ${text}`);
  try {
    try {
      await moveTasks({ ...options, connection: options.url }, output, complain, signal);
    } catch (error) {
      if (!isOfCluster(error)) throw error;
      await moveTasks({ ...options, connection: { cluster: [options.url] } }, output, complain, signal);
    }
    return 0;
  } catch (error) {
    if (!(error instanceof GodwitError)) throw error;
    complain(error.message);
    return 1;
  }
}

/** Whether the URL is that of a node of a cluster: it knows the others. */
function isOfCluster(error: unknown): boolean {
  return error instanceof RedisRefusedError && error.reply === 'MOVED';
}

/** Resolves after the signal, and rejects with an error that does not pass by itself. */
async function moveTasks(
  plan: DispatchOptions & { readonly connection: RedisConnection },
  output: Output,
  complain: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { connection, delayedKey, readyKey, batchSize: limit, verbose } = plan;
  const tasks = openTasks(connection, 'dispatch', CALL_MS);
  const table = verbose ? new Table() : null;
  const backOff = new BackOff();
  const loop = new DispatchLoop({
    dispatch: () => tasks.dispatch({ delayedKey, readyKey, limit, unit: 's' }),
    answered: (answer) => {
      news.there();
      const waitMs = backOff.after(answer);
      if (table) output.print(table.line({ ...answer, waitMs }));
      return waitMs;
    },
    failed: (error, tries) => {
      if (!isPassing(error) || (isOfCluster(error) && typeof connection === 'string')) throw error;
      news.away(error);
      return repeatDelay(error, tries);
    },
  });
  const news = new LinkNews(placeOf(plan.url), complain, () => loop.wake());
  tasks.onLink(news.heard);
  await runUntil(signal, loop, tasks);
}

async function runUntil(signal: AbortSignal, loop: DispatchLoop, tasks: OpenTasks): Promise<void> {
  const running = loop.run();
  const asked = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
  try {
    await Promise.race([running, asked]);
  } finally {
    loop.stop();
    await within(END_MS, running);
    await within(END_MS, tasks.close());
  }
}

/** Host and port of a URL, which may also have a user and a password. */
function placeOf(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname || 'localhost'}:${port || '6379'}`;
}
