redis.call('HGET', key_meta, 'events')
redis.call('LLEN', key_wait)
redis.call('ZCARD', key_prioritized)
redis.call('ZCARD', key_doorbell)
redis.call('HLEN', key_priorities)
-- Bounded, so that one call never takes long and fits what Lua can unpack.
local promoted = promote_due(math.max(0, math.min(arg_limit, 1000)))
if promoted > 0 then ring() end
return { promoted, next_due() }
