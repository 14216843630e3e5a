--@needs types, clock, walk, dead
-- Dead jobs with all that is kept of them, the one that died first first.
check_types(key_attempts, key_failures)
local now = clock()
local jobs = {}
local first, last = dead_range(now)
local _, at, id = walk(key_dead, first, last, function(id, score)
  local fit, bytes, body = is_asked(id)
  if fit then
    local record = redis.call('HGET', key_failures, id) or ''
    bytes = bytes + #record
    jobs[#jobs + 1] = { id, string.format('%.0f', score), body, record, redis.call('HGET', key_attempts, id) or '' }
  end
  return fit, bytes
end)
return { now, at, id, jobs }
