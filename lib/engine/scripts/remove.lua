-- Removes a job in any state but active: what runs is not pulled from under its handler.
redis.call('HGET', key_meta, 'events')
redis.call('HLEN', key_results)
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
redis.call('LLEN', key_wait)
redis.call('LLEN', key_suspects)
for _, key in ipairs({ key_prioritized, key_delayed, key_dead, key_completed }) do redis.call('ZCARD', key) end
take_out(arg_id, redis.call('ZREM', key_dead, arg_id) + redis.call('ZREM', key_completed, arg_id))
redis.call('HDEL', key_results, arg_id)
forget(arg_id)
say(1, { 'removed', arg_id, 'removed.name', name_of(body), 'removed.reason', 'asked' })
return 'removed'
