-- The jobs it has made stay.
for _, key in ipairs({ key_schedules, key_scheduled }) do redis.call('ZCARD', key) end
redis.call('HLEN', key_firings)
local there = redis.call('HDEL', key_schedule, arg_id)
redis.call('HDEL', key_firings, arg_id)
redis.call('ZREM', key_schedules, arg_id)
redis.call('ZREM', key_scheduled, arg_id)
return there
