--@needs schedule-state
-- Schedules in the form that the caller reads. Records may be large, so only as many as fit one answer.
local function view_schedules(ids)
  local views, size = {}, 0
  for _, id in ipairs(ids) do
    size = size + redis.call('HSTRLEN', key_schedules, id)
    if #views > 0 and size > 4194304 then break end
    local record = redis.call('HGET', key_schedules, id)
    local state = read_state(id)
    views[#views + 1] = { id, record or '', state.revision, state.mode,
      redis.call('ZSCORE', key_upcoming, id) or '-1', state.fired, state.last, state.job,
      redis.call('ZSCORE', key_scheduleOrder, id) or '-1', record and 1 or 0, state.recent }
  end
  return views
end
