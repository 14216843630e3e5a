--@needs types, clock, bodies, names, traces, line, ending, event, workers
-- Removes a job in any state except active: a job is not removed while its handler runs.
check_bodies()
local now = clock()
local traces = read_traces()
check_types(key_meta, key_results)
local workers = leased_workers()
if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return 'again' end
local body = body_of(arg_id)
if not body then return 'not-found' end
-- The retention of the job is over, so it counts as gone.
if is_retired(arg_id, now) then return 'not-found' end
for i = more_first, more_last do
  if redis.call('SISMEMBER', KEYS[i], arg_id) == 1 then return 'active' end
end
check_types(key_wait, key_grouped, key_suspects, key_prioritized, key_delayed, key_dead, key_completed)
local ids, events = { arg_id }, { count = 0 }
if leave_dead(ids) + leave_completed(ids) == 0 then leave(arg_id, 1) end
finish_removed(ids, { name_of(body) }, 'asked', events, traces)
write_events(events, now)
return 'removed'
