--@needs steps, names, traces, tally, count
-- Jobs that end as cancelled. Nothing of them stays but, for a minute, when and why, for those who missed the event; that
-- must never fail the move, hence pcall. `begun` is 1 where they ran: their last attempt is one more than have failed.
local function end_cancelled(cancelled, begun, events, traces, now)
  local ids, reasons = cancelled.ids, cancelled.reasons
  local attempts, records = {}, {}
  in_steps(ids, function(...)
    for _, failed in ipairs(redis.call('HMGET', key_attempts, ...)) do
      attempts[#attempts + 1] = count_in(failed) + begun
    end
  end)
  events[#events + 1] = 'cancelled'
  events[#events + 1] = table.concat(ids, '\n')
  events[#events + 1] = 'cancelled.name'
  events[#events + 1] = names_of(ids)
  events[#events + 1] = 'cancelled.attempt'
  events[#events + 1] = table.concat(attempts, '\n')
  events[#events + 1] = 'cancelled.reason'
  events[#events + 1] = table.concat(reasons, '\n')
  forget(ids, traces)
  tally('cancelled', #ids)
  for i = 1, math.min(#ids, 1000) do
    records[#records + 1] = ids[i]
    records[#records + 1] = now .. '\n' .. reasons[i]
  end
  if type(redis.pcall('HSET', key_cancelled, unpack(records))) == 'number' then
    redis.call('PEXPIRE', key_cancelled, 60000)
    local over = redis.call('HLEN', key_cancelled) - 1000
    if over > 0 then redis.call('HDEL', key_cancelled, unpack(redis.call('HRANDFIELD', key_cancelled, over))) end
  end
  return #ids
end

-- Of jobs that leave their worker without having completed, those that were cancelled meanwhile: they go no further.
-- `cancelled` has their ids and reasons.
local function is_cancelled(id, traces, cancelled)
  local reason = traces.has_cancels and redis.call('HGET', key_cancels, id)
  if not reason then return false end
  cancelled.ids[#cancelled.ids + 1] = id
  cancelled.reasons[#cancelled.reasons + 1] = reason
  return true
end
