--@needs bodies, take-out, cancelled
-- Ends a job that has not started; one that runs is marked, and ends when its worker lets go of it. The first reason stays.
local function cancel_job(id, reason, events, traces, now)
  if redis.call('HEXISTS', hash_of(id), id) == 0 then return 'not-found' end
  for i = more_first, more_last do
    if redis.call('SISMEMBER', KEYS[i], id) == 1 then
      if redis.call('HEXISTS', key_cancels, id) == 0 then redis.call('HSET', key_cancels, id, reason) end
      return 'signalled'
    end
  end
  if not take_out(id, 0) then return 'not-found' end
  end_cancelled({ ids = { id }, reasons = { reason } }, 0, events, traces, now)
  return 'cancelled'
end
