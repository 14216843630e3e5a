--@needs types, clock, bodies, names, traces, take-out, say
-- Removes a job in any state but active: what runs is not pulled from under its handler.
check_bodies()
local now = clock()
local traces = read_traces()
check_types(key_meta, key_results)
local workers = redis.call('ZRANGE', key_workers, 0, -1)
if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return 'again' end
local body = redis.call('HGET', hash_of(arg_id), arg_id)
if not body then return 'not-found' end
-- Its retention is over: it is gone already, whoever takes it away.
local kept_until = redis.call('ZSCORE', key_completed, arg_id)
if kept_until and tonumber(kept_until) <= now then return 'not-found' end
for i = more_first, more_last do
  if redis.call('SISMEMBER', KEYS[i], arg_id) == 1 then return 'active' end
end
check_types(key_wait, key_suspects, key_prioritized, key_delayed, key_dead, key_completed)
take_out(arg_id, redis.call('ZREM', key_dead, arg_id) + redis.call('ZREM', key_completed, arg_id))
redis.call('HDEL', key_results, arg_id)
forget({ arg_id }, traces)
say(1, { 'removed', arg_id, 'removed.name', name_of(body), 'removed.reason', 'asked' }, now)
return 'removed'
