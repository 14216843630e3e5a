--@needs types, ring, rank
check_types(key_meta, key_wait, key_prioritized, key_doorbell)
local priority = redis.call('HGET', key_priorities, arg_id)
if redis.call('HEXISTS', key_bodies, arg_id) == 0 then return 'not-found' end
if redis.call('ZREM', key_delayed, arg_id) == 0 then return 'not-delayed' end
if priority then
  redis.call('HDEL', key_priorities, arg_id)
  redis.call('ZADD', key_prioritized, rank(tonumber(priority)), arg_id)
else
  redis.call('RPUSH', key_wait, arg_id)
end
ring()
return 'promoted'
