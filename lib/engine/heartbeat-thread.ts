import { parentPort, workerData } from 'node:worker_threads';
import { RedisRefusedError } from '../errors.js';
import { Connections } from './connections.js';
import type { FromThread, HeartbeatStart, ToThread } from './heartbeat.js';
import { beat } from './scripts/beat.js';

/*
 * The thread that beats. It has its own event loop and its own connection, so it goes on while a handler blocks the other
 * one; but only for `maxBlockMs`, so that a loop that never ends is recovered all the same.
 */
const MIN_CALL_MS = 100;
const start = workerData as HeartbeatStart;
const port = parentPort!;
const shared = new Int32Array(start.shared);
const followed = new Map<number, Extract<ToThread, { kind: 'follow' }>>();
/**
 * A beat without an answer for two beats is lost with its socket, so that a new one still comes within the lease; sooner, and a
 * line that is only slow would be cut for ever.
 */
const callMs = Math.max(MIN_CALL_MS, Math.min(start.callMs, start.beatMs * 2));
const connections = new Connections(start.connection, start.prefix, 'heartbeat', callMs / 10);
connections.onLink(({ state, error }) => {
  say({ kind: 'link', state, ...(error && { message: error.message }) });
  // The beats of the connection before may not have arrived.
  if (state === 'up' && !error) beatAll();
});
const link = connections.commands();

let lastTick = -1;
let movedAt = performance.now();

link.open();
const timer = setInterval(beatAll, start.beatMs);

port.on('message', (message: ToThread) => {
  switch (message.kind) {
    case 'follow':
      followed.set(message.slot, message);
      return;
    case 'leave':
      followed.delete(message.slot);
      return;
    case 'close':
      clearInterval(timer);
      void connections.close().then(() => port.close());
  }
});

function beatAll(): void {
  const tick = Atomics.load(shared, 0);
  const now = performance.now();
  if (tick !== lastTick) {
    lastTick = tick;
    movedAt = now;
  } else if (now - movedAt > start.maxBlockMs) {
    return;
  }
  for (const [slot, { queue, worker, keys }] of followed) {
    if (Atomics.load(shared, slot) === 1) void beatOnce(queue, worker, keys);
  }
}

async function beatOnce(
  queue: string,
  worker: string,
  [workers, record, active, cancels]: [string, string, string, string],
): Promise<void> {
  const { leaseMs, recordMs, script } = start;
  const values = beat.encode({ workers, worker: record, active, cancels }, { worker, leaseMs, recordMs }, {});
  try {
    let raw: unknown;
    try {
      raw = await link.send('beat', 'evalsha', [script.sha, ...values], callMs);
    } catch (error) {
      if (!(error instanceof RedisRefusedError && error.reply === 'NOSCRIPT')) throw error;
      raw = await link.send('beat', 'eval', [script.text, ...values], callMs);
    }
    say({ kind: 'beat', queue, worker, answer: beat.reply(raw as never) });
  } catch {
    // The link has told; the next beat comes soon.
  }
}

function say(message: FromThread): void {
  port.postMessage(message);
}
