for _, key in ipairs({ key_schedules, key_scheduled }) do redis.call('ZCARD', key) end
for _, key in ipairs({ key_schedule, key_firings }) do redis.call('HLEN', key) end
return drop_schedule(arg_id)
