--@needs steps
-- The number of events is limited. Events with large values (only progress has them) are also limited in bytes. `large` has their
-- numbers, each with the bytes of all large events up to it. If there are too many bytes, the oldest events of the stream are
-- trimmed.
local function trim_large(bytes)
  local last = redis.call('HGET', key_meta, 'events')
  if bytes <= rule_largeEvent or not last then return end
  local before = redis.call('ZRANGE', key_large, -1, -1, 'WITHSCORES')[2]
  local all = (tonumber(before) or 0) + bytes
  redis.call('ZADD', key_large, all, last)
  local over = redis.call('ZCOUNT', key_large, '-inf', string.format('%.0f', all - arg_eventsMaxBytes))
  if over > 0 then
    local newest = tonumber(redis.call('ZRANGE', key_large, over - 1, over - 1)[1])
    if newest then redis.pcall('XTRIM', key_events, 'MINID', '=', string.format('%.0f', newest + 1)) end
  end
  -- Forget large events that were already trimmed by number.
  local oldest = tonumber(redis.call('ZRANGE', key_large, over, over)[1])
  while oldest and oldest <= tonumber(last) - arg_maxEvents do
    over = over + 1
    oldest = tonumber(redis.call('ZRANGE', key_large, over, over)[1])
  end
  if over > 0 then redis.call('ZREMRANGEBYRANK', key_large, 0, over - 1) end
end

-- The progress that jobs keep is limited in the same way. `largeProgress` has the jobs with large values, each with the bytes of
-- all large values up to it. If the sum is too large, the values are measured again, because many were overwritten or are gone.
-- If they still take more than three quarters of the limit, the oldest are deleted.
local function bound_progress(id, bytes)
  local last = redis.call('ZRANGE', key_largeProgress, -1, -1, 'WITHSCORES')[2]
  local all = (tonumber(last) or 0) + bytes
  redis.call('ZADD', key_largeProgress, string.format('%.0f', all), id)
  if all <= arg_progressMaxBytes then return end
  local sizes, sum = {}, 0
  local ids = redis.call('ZRANGE', key_largeProgress, 0, -1)
  for i, one in ipairs(ids) do
    sizes[i] = redis.call('HSTRLEN', key_progress, one)
    sum = sum + sizes[i]
  end
  local gone, kept, place = {}, {}, 0
  for i, one in ipairs(ids) do
    if sum > 0.75 * arg_progressMaxBytes and i < #ids then
      gone[#gone + 1] = one
      sum = sum - sizes[i]
    elseif sizes[i] > 0 then
      place = place + sizes[i]
      kept[#kept + 1] = string.format('%.0f', place)
      kept[#kept + 1] = one
    end
  end
  in_steps(gone, function(...) redis.call('HDEL', key_progress, ...) end)
  redis.call('DEL', key_largeProgress)
  in_steps(kept, function(...) redis.call('ZADD', key_largeProgress, ...) end)
end
