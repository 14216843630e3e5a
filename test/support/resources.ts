import { subscribe } from 'node:diagnostics_channel';
import type { Worker } from 'node:worker_threads';
import { timersLeft, forgetTimers } from './timers.js';
import { until } from './wait.js';

/**
 * Names of handles in Node. Vitest keeps pipes open, so they are not counted. Timers and threads are counted separately
 * below.
 */
const HANDLES = {
  TCPSocketWrap: 'socket',
  TCPServerWrap: 'listening server',
  ProcessWrap: 'child process',
  FSEventWrap: 'file watcher',
} as const;

type Handle = keyof typeof HANDLES;

/** The open resources at a moment, without the threads and timers of Vitest. */
export interface Usage {
  readonly handles: Readonly<Record<Handle, number>>;
}

const threads = new Set<Worker>();
subscribe('worker_threads', (message) => {
  const { worker } = message as { worker: Worker };
  threads.add(worker);
  worker.once('exit', () => threads.delete(worker));
});

/** Begins the count for a test. */
export function startCounting(): Usage {
  threads.clear();
  forgetTimers();
  return { handles: handlesInUse() };
}

function handlesInUse(): Record<Handle, number> {
  const counts: Record<Handle, number> = {
    TCPSocketWrap: 0,
    TCPServerWrap: 0,
    ProcessWrap: 0,
    FSEventWrap: 0,
  };
  for (const kind of process.getActiveResourcesInfo()) {
    if (kind in counts) counts[kind as Handle] += 1;
  }
  return counts;
}

/** Waits until only what was open before is open. Closing a socket or ending a thread takes a moment. */
export async function expectNothingLeft(before: Usage): Promise<void> {
  let left: string[] = [];
  await until(() => (left = leftSince(before)).length === 0, {
    timeout: 5_000,
    what: () => `the test leaves nothing open, but it left ${left.join(', ')}`,
  });
}

function leftSince(before: Usage): string[] {
  const now = handlesInUse();
  const handles = (Object.keys(HANDLES) as Handle[])
    .filter((kind) => now[kind] > before.handles[kind])
    .map((kind) => `${now[kind] - before.handles[kind]} × ${HANDLES[kind]} (${kind})`);
  const running = [...threads].map((thread) => `thread ${thread.threadId}`);
  return [...handles, ...running, ...timersLeft()];
}
