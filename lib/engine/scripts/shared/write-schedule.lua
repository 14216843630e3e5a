--@needs schedule-state, next-time
-- Writes a schedule, if it is still as the caller saw it; 0 is the revision of one that is not there.
local function write_schedule(id, revision, record, keep, next_at, now, now_us)
  local exists = redis.call('HEXISTS', key_schedules, id) == 1
  local state = read_state(id)
  if (exists and state.revision or 0) ~= revision then return 'changed' end
  -- Begins with the time in microseconds, so that one made anew is never taken for the one that was removed.
  if not exists then state = { revision = now_us, fired = 0, last = -1, mode = '', job = '', recent = '', more = '' } end
  state.revision = state.revision + 1
  -- What a person has paused stays so when a release says it anew.
  if state.mode ~= 'paused' and not keep then set_next(id, state, next_at) end
  redis.call('HSET', key_schedules, id, record)
  write_state(id, state)
  redis.call('ZADD', key_scheduleOrder, 'NX', now, id)
  return 'written'
end
