--@needs bodies, names, logs
-- Dead jobs are kept for a person, up to a number and an age; those beyond go now, with an event.
local function bury(id, record, now)
  redis.call('ZADD', key_dead, now, id)
  redis.call('HSET', key_failures, id, now .. '\n' .. record)
end

local function trim_dead(events, now)
  local gone = redis.call('ZRANGE', key_dead, '-inf', now - arg_deadAge, 'BYSCORE', 'LIMIT', 0, 500)
  if #gone == 0 then
    local over = math.min(redis.call('ZCARD', key_dead) - arg_deadMax, 500)
    if over <= 0 then return 0 end
    gone = redis.call('ZRANGE', key_dead, 0, over - 1)
  end
  -- Where bodies cannot be read, their jobs stay: this comes behind other writes.
  local bodies = bodies_of(gone)
  if bodies.err then return 0 end
  events[#events + 1] = 'removed'
  events[#events + 1] = table.concat(gone, '\n')
  events[#events + 1] = 'removed.name'
  events[#events + 1] = table.concat(add_names({}, bodies), '\n')
  events[#events + 1] = 'removed.reason'
  events[#events + 1] = 'retention'
  redis.call('ZREM', key_dead, unpack(gone))
  drop_bodies(unpack(gone))
  drop_logs(gone)
  for _, key in ipairs({ key_attempts, key_stalls, key_failures, key_progress }) do redis.call('HDEL', key, unpack(gone)) end
  return #gone
end
