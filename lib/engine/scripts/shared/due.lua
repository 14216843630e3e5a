--@needs rank, count
-- Delayed jobs whose time has come go to the line, at most `limit`; a job with a priority keeps it.
local function promote_due(limit, now)
  local due = redis.call('ZRANGE', key_delayed, '-inf', '(' .. now + 1, 'BYSCORE', 'LIMIT', 0, limit)
  if #due == 0 then return 0 end
  redis.call('ZREMRANGEBYRANK', key_delayed, 0, #due - 1)
  if redis.call('HLEN', key_priorities) == 0 then
    redis.call('RPUSH', key_wait, unpack(due))
    return #due
  end
  local priorities = redis.call('HMGET', key_priorities, unpack(due))
  local plain = {}
  for i = 1, #due do
    local priority = priority_in(priorities[i])
    if priority > 0 then
      redis.call('ZADD', key_prioritized, rank(priority), due[i])
    else
      plain[#plain + 1] = due[i]
    end
  end
  redis.call('HDEL', key_priorities, unpack(due))
  if #plain > 0 then redis.call('RPUSH', key_wait, unpack(plain)) end
  return #due
end
