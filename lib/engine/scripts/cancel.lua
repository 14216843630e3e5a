--@needs types, clock, bodies, traces, cancel, say
-- Ends a job as cancelled, now or when its run ends. One that has ended already is left as it is.
check_bodies()
local now = clock()
local traces = read_traces()
check_types(key_meta, key_wait, key_suspects, key_prioritized, key_delayed, key_stats)
local workers = redis.call('ZRANGE', key_workers, 0, -1)
if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return 'again' end
local events = {}
local answer = cancel_job(arg_id, arg_reason, events, traces, now)
if #events > 0 then say(1, events, now) end
return answer
