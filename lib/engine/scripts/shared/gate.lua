-- Whether jobs may start.

-- Whether a hold or a breaker may keep jobs of some line from starting.
local function has_blocks_in(limited, now) return string.find(limited, 'b', 1, true) and now < (tonumber(string.match(limited, '%d+')) or math.huge) end

-- How many of `want` jobs may start now, and why not more: no limit, the queue is paused, or only `claim-limited` can say.
local function open_gate(want, now)
  local closed = redis.call('HMGET', key_meta, 'paused', 'limited')
  if closed[1] then return 0, rule_supplyPaused end
  if closed[2] then
    local starts_at_once = string.find(closed[2], '[rs]') or has_blocks_in(closed[2], now)
    return 0, starts_at_once and rule_supplyAtOnce or rule_supplyLimited
  end
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
