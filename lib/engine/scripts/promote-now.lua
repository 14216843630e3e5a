--@needs types, ring, rank, count
check_types(key_meta, key_wait, key_prioritized, key_doorbell)
local priority = priority_in(redis.call('HGET', key_priorities, arg_id))
if redis.call('HEXISTS', key_bodies, arg_id) == 0 then return 'not-found' end
if redis.call('ZREM', key_delayed, arg_id) == 0 then return 'not-delayed' end
redis.call('HDEL', key_priorities, arg_id)
if priority > 0 then
  redis.call('ZADD', key_prioritized, rank(priority), arg_id)
else
  redis.call('RPUSH', key_wait, arg_id)
end
ring()
return 'promoted'
