--@needs types, clock
-- A worker process lives, for one lease from now. Where it says nothing new, two commands are all that an idle process costs;
-- a server that has lost what it said before answers that it does not know it.
local now = clock()
if arg_info == '' then
  local renewed = redis.call('ZADD', key_processes, 'XX', 'CH', now + arg_leaseMs, arg_process)
  return renewed == 1 and 'registered' or 'unknown'
end
-- Who is gone is kept for a while, for whoever asks whose jobs were lost.
local gone = redis.call('ZRANGE', key_processes, '-inf', now - arg_rememberMs, 'BYSCORE', 'LIMIT', 0, 100)
check_types(key_processInfo)
if #gone > 0 then
  redis.call('ZREM', key_processes, unpack(gone))
  redis.call('HDEL', key_processInfo, unpack(gone))
end
redis.call('ZADD', key_processes, now + arg_leaseMs, arg_process)
redis.call('HSET', key_processInfo, arg_process, arg_info)
redis.call('PEXPIRE', key_processes, arg_keepMs)
redis.call('PEXPIRE', key_processInfo, arg_keepMs)
return 'registered'
