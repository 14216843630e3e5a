-- Gives held jobs back to the head of the line; no attempt is counted. Those that were cancelled end.
redis.call('HGET', key_meta, 'events')
redis.call('HGET', key_worker, 'seq')
redis.call('LLEN', key_wait)
redis.call('LLEN', key_suspects)
redis.call('ZCARD', key_workers)
redis.call('ZCARD', key_doorbell)
redis.call('HLEN', key_stats)
local lost, released = {}, {}
for i = ids_first, ids_last do
  if redis.call('SREM', key_active, ARGV[i]) == 1 then
    if not is_cancelled(ARGV[i]) then released[#released + 1] = ARGV[i] end
  else
    lost[#lost + 1] = ARGV[i]
  end
end
local events = {}
if #cancelled > 0 then end_cancelled(cancelled, cancel_reasons, 1, events) end
if #released > 0 then
  to_head(released)
  ring()
  events[#events + 1] = 'released'
  events[#events + 1] = table.concat(released, '\n')
  events[#events + 1] = 'released.name'
  events[#events + 1] = names_of(released)
end
say(#cancelled + #released, events)
if redis.call('SCARD', key_active) == 0 then
  redis.call('ZREM', key_workers, arg_worker)
  if arg_leave == 1 then redis.call('DEL', key_worker) end
end
return lost
