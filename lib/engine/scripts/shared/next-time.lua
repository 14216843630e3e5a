--@needs bell
-- Sets or removes the next time of a schedule. Idle workers sleep until the earliest time they know, so a new earliest time wakes
-- one of them. The ring has another member than a ring for a new job: a claim at the doorbell would return no times, so the
-- worker exchanges instead.
local function set_next(id, state, at)
  if at < 0 then
    state.mode = 'ended'
    redis.call('ZREM', key_upcoming, id)
    return
  end
  local first = redis.call('ZRANGE', key_upcoming, 0, 0, 'WITHSCORES')
  state.mode = ''
  redis.call('ZADD', key_upcoming, at, id)
  if not first[2] or at < tonumber(first[2]) then ring_due() end
end
