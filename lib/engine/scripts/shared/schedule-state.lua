--@needs count
-- What is counted of a schedule, a line each, so that no JSON is read here: revision, jobs made, last occurrence or -1, mode
-- (empty while it runs), last job. What stands behind it, a newer version has written: it stays.
local function read_state(id)
  local revision, fired, last, mode, job, more = string.match(redis.call('HGET', key_firings, id) or '',
    '^(%d+)\n(%d+)\n(%-?%d+)\n([^\n]*)\n([^\n]*)(.*)$')
  return { revision = count_in(revision), fired = count_in(fired), last = count_in(last, -1),
    mode = mode or '', job = job or '', more = more or '' }
end

local function write_state(id, state)
  redis.call('HSET', key_firings, id, string.format('%.0f\n%.0f\n%.0f\n%s\n%s%s',
    state.revision, state.fired, state.last, state.mode, state.job, state.more))
end
