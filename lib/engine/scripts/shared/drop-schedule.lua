-- Deletes a schedule. The jobs that it has added stay.
local function drop_schedule(id)
  redis.call('HDEL', key_firings, id)
  redis.call('ZREM', key_upcoming, id)
  redis.call('ZREM', key_scheduleOrder, id)
  return redis.call('HDEL', key_schedules, id)
end
