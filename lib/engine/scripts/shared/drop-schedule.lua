-- The jobs it has made stay.
local function drop_schedule(id)
  redis.call('HDEL', key_firings, id)
  redis.call('ZREM', key_schedules, id)
  redis.call('ZREM', key_scheduled, id)
  return redis.call('HDEL', key_schedule, id)
end
