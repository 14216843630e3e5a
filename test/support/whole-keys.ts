import type { Redis } from 'ioredis';

/** A key with all that it has. */
interface WholeKey {
  readonly key: string;
  readonly kind: string;
  /** How long it lives, in ms, and until when, in ms since 1970. Negative if it does not expire. */
  readonly ttl: number;
  readonly expiresAt: number;
  /** Members of a list or set; fields or members, each followed by its value or score; entries of a stream. A string is alone. */
  readonly value: readonly (string | readonly [string, string[]])[];
}

/** One script reads everything, so nothing changes in between, and it takes one round trip. */
const READ = `#!lua flags=no-writes
local answer = {}
local keys = redis.call('KEYS', ARGV[1])
table.sort(keys)
for _, key in ipairs(keys) do
  local kind = redis.call('TYPE', key).ok
  local value
  if kind == 'string' then value = { redis.call('GET', key) }
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'set' then value = redis.call('SMEMBERS', key)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'hash' then value = redis.call('HGETALL', key)
  elseif kind == 'stream' then value = redis.call('XRANGE', key, '(' .. ARGV[2] .. '-0', '+')
  else error('ERR ' .. key .. ' is of type ' .. kind .. ', which no queue uses') end
  answer[#answer + 1] = { key, kind, redis.call('PTTL', key), redis.call('PEXPIRETIME', key), value }
end
return answer`;

type RawKey = readonly [string, string, number, number, WholeKey['value']];

/**
 * All keys that match the pattern, sorted by name.
 * @param after of streams only the entries after the one with this number
 */
export async function readKeys(admin: Redis, pattern: string, after = 0): Promise<WholeKey[]> {
  const raw = (await admin.eval(READ, 0, pattern, String(after))) as readonly RawKey[];
  return raw.map(([key, kind, ttl, expiresAt, value]) => ({ key, kind, ttl, expiresAt, value }));
}
