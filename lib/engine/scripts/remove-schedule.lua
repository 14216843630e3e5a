for _, key in ipairs({ key_schedules, key_scheduleIds }) do redis.call('ZCARD', key) end
for _, key in ipairs({ key_schedule, key_scheduleStates }) do redis.call('HLEN', key) end
return drop_schedule(arg_id)
