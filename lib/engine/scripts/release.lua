--@needs types, clock, bodies, names, traces, hold, line, ending, bell, event
-- Gives held jobs back to the head of the line without counting an attempt. Cancelled jobs end.
check_bodies()
local now = clock()
local traces = read_traces()
check_types(key_meta, key_worker, key_wait, key_suspects, key_workers, key_doorbell, key_stats, key_completed, key_results)
local lost, released, cancelled = {}, {}, { ids = {}, reasons = {}, keeps = {} }
for i = ids_first, ids_last do
  if let_go_or_lost(ARGV[i], lost) and not is_cancelled(ARGV[i], traces, cancelled) then released[#released + 1] = ARGV[i] end
end
local events = { count = 0 }
finish_cancelled(cancelled, 1, events, traces, now)
free_slots(released, traces, 'moved')
if #released > 0 then
  to_head(released)
  mark_returned(released)
  say(events, 'released', #released, table.concat(released, '\n'), 'name', names_of(released))
end
if #released > 0 or traces.has_freed then ring() end
write_events(events, now)
if held() == 0 then
  end_lease(arg_worker)
  if arg_leave == 1 then redis.call('DEL', key_worker) end
end
return lost
