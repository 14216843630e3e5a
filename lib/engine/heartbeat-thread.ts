import { parentPort, workerData } from 'node:worker_threads';
import { Connections } from './wire/connections.js';
import type { FromThread, HeartbeatStart, ToThread } from './heartbeat.js';
import { ProcessRenewal } from './process-renewal.js';
import { inFull } from './wire/fixed-args.js';
import type { AnyScript, Value } from './script.js';
import { beat } from './scripts/leases.js';
import { isBeatDue } from '../contract/engine.js';
import { FAREWELL_MS, isForgotten, within } from '../contract/retry.js';

/*
 * The heartbeat thread renews leases. It has its own event loop and its own connection, so it continues while a handler blocks the
 * main event loop. After `maxBlockMs` it stops, so that the jobs of a handler in an endless loop are recovered.
 */
const MIN_CALL_MS = 100;
const start = workerData as HeartbeatStart;
const port = parentPort!;
const shared = new Int32Array(start.shared);
type Follow = Extract<ToThread, { kind: 'follow' }>;
const followed = new Map<number, Follow>();
/** When each lease was last renewed, by slot. */
const beatenAt = new Map<number, number>();
/**
 * How long a heartbeat may wait for its answer. After two intervals its connection is closed, so that a new one still renews the
 * lease in time. A shorter limit would close slow connections again and again.
 */
const callMs = Math.max(MIN_CALL_MS, Math.min(start.callMs * 2, start.beatMs * 2));
const connections = new Connections(start.connection, start.prefix, 'heartbeat', callMs / 10);
connections.onLink(({ state, error }) => {
  say({ kind: 'link', state, ...(error && { message: error.message }) });
  if (state !== 'up' || error) return;
  // Heartbeats on the previous connection may not have arrived.
  renewal.forget();
  beatenAt.clear();
  beatAll();
});
const link = connections.commands();
const renewal = new ProcessRenewal(
  start.prefix,
  start.leaseMs,
  run,
  (orders) => say({ kind: 'orders', orders }),
  () => say({ kind: 'lost' }),
);

/** Within this time a running event loop changes its number several times. */
const stillMs = Math.max(start.beatMs * 0.9, 500);
let lastTick = -1;
let movedAt = performance.now();

// It was closed while it loaded.
if (Atomics.compareExchange(shared, shared.length - 1, 0, 1) === 2) process.exit();
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
      renewal.show(message.record);
      // The second renewal writes a record that was shown while the first was in flight.
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
  // While the event loop is blocked, nobody knows which answers have arrived: an idle worker may have received a job. So its
  // lease is renewed too.
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
  if (isStill) renewal.showBlocked(blockedMs);
  if (isAlive) void renewal.renew();
}

async function beatOnce({ queue, worker, lease, keys }: Follow): Promise<void> {
  const [workers, record, active, toCancel] = keys;
  const { leaseMs } = lease;
  const args = beat.encode({ workers, worker: record, active, toCancel }, { worker, leaseMs }, {});
  try {
    const raw = await run(beat, args);
    say({ kind: 'beat', queue, worker, answer: beat.reply(raw as never) });
  } catch {
    // The connection logs the failure. The next heartbeat comes soon.
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
  // A renewal that arrives after `unregister` would write the record again.
  if (link.isUp) await within(FAREWELL_MS, renewal.end());
  await connections.close();
  port.close();
}

function say(message: FromThread): void {
  port.postMessage(message);
}
