--@needs types, clock, bodies, body-lines, traces, line, ending, event, workers
-- Ends a job as cancelled, now or when its run ends. A job that has ended already is left as it is.
check_bodies()
local now = clock()
local traces = read_traces()
check_types(key_meta, key_wait, key_grouped, key_suspects, key_prioritized, key_delayed, key_stats, key_completed, key_results)
local workers = leased_workers()
if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return 'again' end
local body = body_of(arg_id)
if not body then return 'not-found' end
local keep = kept_when_cancelled(body, arg_keep)
for i = more_first, more_last do
  if redis.call('SISMEMBER', KEYS[i], arg_id) == 1 then
    mark_cancelled(arg_id, arg_reason, keep)
    return 'signalled'
  end
end
if not leave(arg_id, 1) then return 'not-found' end
local events = { count = 0 }
finish_cancelled({ ids = { arg_id }, reasons = { arg_reason }, keeps = { keep } }, 0, events, traces, now)
write_events(events, now)
return 'cancelled'
