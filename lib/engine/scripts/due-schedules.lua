--@needs clock, next-schedule, schedule-view
-- Schedules whose time has come, the most overdue first. `offset` skips those at the head that the caller cannot read.
local now = clock()
local ids = redis.call('ZRANGE', key_upcoming, '-inf', now, 'BYSCORE', 'LIMIT', arg_offset, arg_limit)
return { now, next_schedule(now), view_schedules(ids) }
