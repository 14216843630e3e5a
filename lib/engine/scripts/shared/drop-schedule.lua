-- The jobs it has made stay.
local function drop_schedule(id)
  redis.call('HDEL', key_scheduleStates, id)
  redis.call('ZREM', key_schedules, id)
  redis.call('ZREM', key_scheduleIds, id)
  return redis.call('HDEL', key_schedule, id)
end
