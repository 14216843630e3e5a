--@needs types, clock, bodies, names, traces, ring, head, cancelled, say
-- Gives held jobs back to the head of the line; no attempt is counted. Those that were cancelled end.
check_bodies()
local now = clock()
local traces = read_traces()
check_types(key_meta, key_worker, key_wait, key_suspects, key_workers, key_doorbell, key_stats)
local lost, released, cancelled = {}, {}, { ids = {}, reasons = {} }
for i = ids_first, ids_last do
  if redis.call('SREM', key_active, ARGV[i]) == 1 then
    if not is_cancelled(ARGV[i], traces, cancelled) then released[#released + 1] = ARGV[i] end
  else
    lost[#lost + 1] = ARGV[i]
  end
end
local events = {}
if #cancelled.ids > 0 then end_cancelled(cancelled, 1, events, traces, now) end
if #released > 0 then
  to_head(released)
  ring()
  events[#events + 1] = 'released'
  events[#events + 1] = table.concat(released, '\n')
  events[#events + 1] = 'released.name'
  events[#events + 1] = names_of(released)
end
say(#cancelled.ids + #released, events, now)
if redis.call('SCARD', key_active) == 0 then
  redis.call('ZREM', key_workers, arg_worker)
  if arg_leave == 1 then redis.call('DEL', key_worker) end
end
return lost
