-- Ends a job as cancelled, now or when its run ends. One that has ended already is left as it is.
redis.call('HGET', key_meta, 'events')
redis.call('LLEN', key_wait)
redis.call('LLEN', key_suspects)
redis.call('ZCARD', key_prioritized)
redis.call('ZCARD', key_delayed)
redis.call('HLEN', key_stats)
local workers = redis.call('ZRANGE', key_workers, 0, -1)
if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return 'again' end
local events = {}
local answer = cancel_job(arg_id, arg_reason, events)
if #events > 0 then say(1, events) end
return answer
