import type { ClaimAnswer, EnqueueCall, ExchangeCall, QueueEngine } from '#lib/contract/engine.js';
import type { RedisEngine } from '#lib/engine/redis-engine.js';
import { claim } from '#lib/engine/scripts/claim.js';
import { enqueueClaimed } from '#lib/engine/scripts/enqueue-claimed.js';
import { QUEUE } from './rig.js';

/** What an idle worker leaves at the bell of Redis, made at once. Null where an exchange is needed. */
export function claimNow(engine: QueueEngine, call: ExchangeCall): Promise<ClaimAnswer | null> {
  const redis = engine as RedisEngine;
  return redis['store'].call(claim, redis['exchanges']['claimOf'](QUEUE, call), 5_000);
}

/** The add of one job with the claim of an idle worker. Null where both have to be made as ever. */
export function addClaimed(engine: QueueEngine, add: EnqueueCall, own: ExchangeCall): Promise<number | null> {
  const store = (engine as RedisEngine)['store'];
  const keys = store.keysOf(QUEUE);
  const { seq, rememberMs } = add;
  const { id, body, name } = add.jobs[0]!;
  const { worker, leaseMs } = own;
  const values = enqueueClaimed.encode(
    {
      ...keys.fixed,
      worker: keys.worker(worker),
      active: keys.active(worker),
      lane: keys.lane(add.lane),
      bodies: keys.bodies(id),
    },
    { seq, rememberMs, id, body, name, worker, claimSeq: own.seq, leaseMs, maxEvents: 10_000 },
    {},
  );
  return store.call(enqueueClaimed, values, 5_000);
}
