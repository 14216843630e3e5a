--@needs schedule-state, next-time
-- Writes a schedule if it has not changed since the caller read it. Revision 0 means that it does not exist.
local function write_schedule(id, revision, record, keep, next_at, now, now_us)
  local exists = redis.call('HEXISTS', key_schedules, id) == 1
  local state = read_state(id)
  if (exists and state.revision or 0) ~= revision then return 'changed' end
  -- Revisions begin with the time in microseconds, so that a schedule that was created again is never taken for the removed one.
  if not exists then state = { revision = now_us, fired = 0, last = -1, mode = '', job = '', recent = '', more = '' } end
  state.revision = state.revision + 1
  -- A schedule that a person has paused stays paused when a release declares it again.
  if state.mode ~= 'paused' and not keep then set_next(id, state, next_at) end
  redis.call('HSET', key_schedules, id, record)
  write_state(id, state)
  redis.call('ZADD', key_scheduleOrder, 'NX', now, id)
  return 'written'
end
