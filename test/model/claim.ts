import type { ClaimAnswer, ExchangeCall, QueueEngine } from '#lib/contract/engine.js';
import type { RedisEngine } from '#lib/engine/redis-engine.js';
import { claim } from '#lib/engine/scripts/claim.js';
import { QUEUE } from './rig.js';

/** What an idle worker leaves at the bell of Redis, made at once. Null where an exchange is needed. */
export function claimNow(engine: QueueEngine, call: ExchangeCall): Promise<ClaimAnswer | null> {
  const redis = engine as RedisEngine;
  return redis['store'].call(claim, redis['exchanges']['claimOf'](QUEUE, call), 5_000);
}
