--@needs bell
-- Sets the next time of a schedule, or that there is none. An idle worker sleeps until the first one it knows of, so a new
-- first one wakes somebody, and is told as a time: what is claimed at the bell brings no times with it.
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
