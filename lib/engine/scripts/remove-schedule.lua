-- The jobs it has made stay.
for _, key in ipairs({ key_schedules, key_scheduleIds }) do redis.call('ZCARD', key) end
redis.call('HLEN', key_scheduleStates)
local there = redis.call('HDEL', key_schedule, arg_id)
redis.call('HDEL', key_scheduleStates, arg_id)
redis.call('ZREM', key_schedules, arg_id)
redis.call('ZREM', key_scheduleIds, arg_id)
return there
