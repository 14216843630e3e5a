-- Dead jobs back to the line; attempts and stalls start again, what went wrong is forgotten. A corrupt job has nothing to run.
redis.call('HGET', key_meta, 'events')
redis.call('LLEN', key_wait)
redis.call('ZCARD', key_doorbell)
local ids = {}
if arg_limit > 0 then
  ids = redis.call('ZRANGE', key_dead, 0, arg_limit - 1)
else
  for i = ids_first, ids_last do
    if redis.call('ZSCORE', key_dead, ARGV[i]) then ids[#ids + 1] = ARGV[i] end
  end
end
local retried = {}
for i = 1, #ids do
  if redis.call('HSTRLEN', key_jobs, ids[i]) > 0 and redis.call('ZREM', key_dead, ids[i]) == 1 then retried[#retried + 1] = ids[i] end
end
if #retried == 0 then return retried end
in_steps(retried, forget_traces)
in_steps(retried, function(...) redis.call('RPUSH', key_wait, ...) end)
ring()
say(#retried, { 'added', table.concat(retried, '\n'), 'added.name', names_of(retried) })
return retried
