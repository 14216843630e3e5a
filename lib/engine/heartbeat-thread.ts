import { parentPort, workerData } from 'node:worker_threads';
import { Connections } from './wire/connections.js';
import type { FromThread, HeartbeatStart, ToThread } from './heartbeat.js';
import { ProcessRenewal } from './process-renewal.js';
import { inFull } from './wire/fixed-args.js';
import type { AnyScript, Value } from './script.js';
import { beat } from './scripts/beat.js';
import { isBeatDue } from '../contract/engine.js';
import { isForgotten, LAST_WORDS_MS, within } from '../contract/retry.js';

/*
 * The thread that beats. It has its own event loop and its own connection, so it goes on while a handler blocks the other
 * one; but only for `maxBlockMs`, so that a loop that never ends is recovered all the same.
 */
const MIN_CALL_MS = 100;
const start = workerData as HeartbeatStart;
const port = parentPort!;
const shared = new Int32Array(start.shared);
type Follow = Extract<ToThread, { kind: 'follow' }>;
const followed = new Map<number, Follow>();
/** When the lease of a slot was last renewed. */
const beatenAt = new Map<number, number>();
/**
 * A beat without an answer for two beats is lost with its socket, so that a new one still comes within the lease; sooner, and a
 * line that is only slow would be cut for ever.
 */
const callMs = Math.max(MIN_CALL_MS, Math.min(start.callMs * 2, start.beatMs * 2));
const connections = new Connections(start.connection, start.prefix, 'heartbeat', callMs / 10);
connections.onLink(({ state, error }) => {
  say({ kind: 'link', state, ...(error && { message: error.message }) });
  if (state !== 'up' || error) return;
  // The beats of the connection before may not have arrived.
  renewal.forget();
  beatenAt.clear();
  beatAll();
});
const link = connections.commands();
const renewal = new ProcessRenewal(start.prefix, start.leaseMs, run);

/** The event loop moves its number several times in this time, where it turns. */
const stillMs = Math.max(start.beatMs * 0.9, 500);
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
      beatenAt.delete(message.slot);
      return;
    case 'show':
      renewal.show(message.process, message.info);
      // Again for what was said while one was on its way.
      void renewal.renew().then(() => renewal.renew());
      return;
    case 'close':
      void close();
  }
});

function beatAll(): void {
  const tick = Atomics.load(shared, 0);
  const now = performance.now();
  if (tick !== lastTick) {
    lastTick = tick;
    movedAt = now;
  }
  const blockedMs = now - movedAt;
  // While the loop stands still nobody can say what has come: a job may have been given to a worker that was idle.
  const isStill = blockedMs > stillMs;
  let isAlive = blockedMs <= start.maxBlockMs;
  for (const [slot, follow] of followed) {
    const { leaseMs, maxBlockMs } = follow.lease;
    if (blockedMs > maxBlockMs) continue;
    isAlive = true;
    if (!isStill && Atomics.load(shared, slot) !== 1) continue;
    if (!isBeatDue(now - (beatenAt.get(slot) ?? -Infinity), leaseMs, start.beatMs)) continue;
    beatenAt.set(slot, now);
    void beatOnce(follow);
  }
  if (isAlive) void renewal.renew();
}

async function beatOnce({ queue, worker, lease, keys }: Follow): Promise<void> {
  const [workers, record, active, toCancel] = keys;
  const { leaseMs, recordMs } = lease;
  const args = beat.encode({ workers, worker: record, active, toCancel }, { worker, leaseMs, recordMs }, {});
  try {
    const raw = await run(beat, args);
    say({ kind: 'beat', queue, worker, answer: beat.reply(raw as never) });
  } catch {
    // The link has told; the next beat comes soon.
  }
}

async function run(script: Pick<AnyScript, 'name' | 'text'>, args: Value[]): Promise<unknown> {
  try {
    return await link.send(script.name, 'evalsha', args, callMs);
  } catch (error) {
    if (!isForgotten(error)) throw error;
    return link.send(script.name, 'eval', inFull(script.text, args), callMs);
  }
}

async function close(): Promise<void> {
  clearInterval(timer);
  // A renewal that is on its way and comes late would undo the farewell.
  if (link.isUp) await within(LAST_WORDS_MS, renewal.end());
  await connections.close();
  port.close();
}

function say(message: FromThread): void {
  port.postMessage(message);
}
