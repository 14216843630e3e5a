--@needs logs
-- A completed job whose retention is over is not in the queue any more, although nothing has taken it away yet.
local function retired(id, now)
  local kept_until = redis.call('ZSCORE', key_completed, id)
  if not kept_until or tonumber(kept_until) > now then return false end
  redis.call('ZREM', key_completed, id)
  drop_logs({ id })
  for _, key in ipairs({ key_results, key_failures, key_progress }) do redis.call('HDEL', key, id) end
  return true
end
