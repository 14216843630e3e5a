-- Events are bounded by number; those with large values, which only progress has, are bounded in bytes too. `large` knows them: the
-- number of the event, and how many bytes all of them had up to it. The oldest of the stream go until about so many are left.
local function trim_large(bytes)
  local last = redis.call('HGET', key_meta, 'events')
  if bytes <= 1024 or not last then return end
  local before = redis.call('ZRANGE', key_large, -1, -1, 'WITHSCORES')[2]
  local all = (tonumber(before) or 0) + bytes
  redis.call('ZADD', key_large, all, last)
  local over = redis.call('ZCOUNT', key_large, '-inf', string.format('%.0f', all - arg_eventsMaxBytes))
  if over > 0 then
    local newest = tonumber(redis.call('ZRANGE', key_large, over - 1, over - 1)[1])
    if newest then redis.pcall('XTRIM', key_events, 'MINID', '=', string.format('%.0f', newest + 1)) end
  end
  -- Those that were trimmed by number are forgotten with them.
  local oldest = tonumber(redis.call('ZRANGE', key_large, over, over)[1])
  while oldest and oldest <= tonumber(last) - arg_maxEvents do
    over = over + 1
    oldest = tonumber(redis.call('ZRANGE', key_large, over, over)[1])
  end
  if over > 0 then redis.call('ZREMRANGEBYRANK', key_large, 0, over - 1) end
end
