-- Whether jobs may start.

-- How many of `want` jobs may start now, and why not more: no limit, the queue is paused, or only `claim-limited` can say.
local function open_gate(want)
  local closed = redis.call('HMGET', key_meta, 'paused', 'limited')
  if closed[1] then return 0, rule_supplyPaused end
  if closed[2] then return 0, string.find(closed[2], '[rbs]') and rule_supplyAtOnce or rule_supplyLimited end
  return want, rule_supplyMore
end

local function is_paused()
  return redis.call('HEXISTS', key_meta, 'paused') == 1
end

local function close_gate(now)
  redis.call('HSET', key_meta, 'paused', now)
end

local function reopen_gate()
  redis.call('HDEL', key_meta, 'paused')
end
