-- Whether jobs may start.

-- How many of so many jobs may start now, and in how many ms more may (or that nothing holds them up, or that the queue is paused).
local function open_gate(want)
  if redis.call('HEXISTS', key_meta, 'paused') == 1 then return 0, rule_supplyPaused end
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
