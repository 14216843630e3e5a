redis.call('HGET', key_meta, 'events')
redis.call('ZCARD', key_delayed)
redis.call('LLEN', key_wait)
redis.call('ZCARD', key_prioritized)
redis.call('ZCARD', key_doorbell)
redis.call('HLEN', key_priorities)
local promoted = promote_due(arg_limit)
if promoted > 0 then ring() end
return { promoted, next_due() }
