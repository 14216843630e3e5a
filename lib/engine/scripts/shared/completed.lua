--@needs bodies, logs
-- Completed jobs whose retention is over go, and then those beyond the number that is kept, first whose retention ends first.
local function trim_completed(now)
  local over = redis.call('ZRANGE', key_completed, '-inf', now, 'BYSCORE', 'LIMIT', 0, 500)
  if #over == 0 then
    local beyond = math.min(redis.call('ZCARD', key_completed) - arg_completedMax, 500)
    if beyond <= 0 then return 0 end
    over = redis.call('ZRANGE', key_completed, 0, beyond - 1)
  end
  redis.call('ZREM', key_completed, unpack(over))
  drop_bodies(unpack(over))
  drop_logs(over)
  for _, key in ipairs({ key_results, key_failures, key_progress }) do redis.call('HDEL', key, unpack(over)) end
  return #over
end
