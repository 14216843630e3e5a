-- Schedules whose time has come, the most overdue first; those at the head that the caller cannot read are passed over.
local ids = redis.call('ZRANGE', key_schedules, '-inf', now, 'BYSCORE', 'LIMIT', arg_offset, arg_limit)
return { now, next_schedule(), view_schedules(ids) }
