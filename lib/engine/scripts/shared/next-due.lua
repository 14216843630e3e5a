-- Ms until the first delayed job is due, -1 where there is none.
local function next_due(now)
  local first = redis.call('ZRANGE', key_delayed, 0, 0, 'WITHSCORES')
  return first[2] and math.max(0, math.floor(tonumber(first[2])) - now) or -1
end
