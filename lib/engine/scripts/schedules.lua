--@needs clock, schedule-view
-- One schedule, or a page of all schedules, oldest first.
local now = clock()
if arg_id ~= '' then
  local views = view_schedules({ arg_id })
  return { now, views[1][10], views }
end
local ids = redis.call('ZRANGE', key_scheduleOrder, arg_offset, arg_offset + arg_limit - 1)
return { now, redis.call('ZCARD', key_scheduleOrder), view_schedules(ids) }
