--@needs types, clock
-- Renews the record of a process for one lease. If nothing has changed, an idle process costs only two commands. A server that
-- has lost the record answers `unknown`.
local now = clock()
if arg_info == '' then
  local renewed = redis.call('ZADD', key_processes, 'XX', 'CH', now + arg_leaseMs, arg_process)
  return renewed == 1 and 'registered' or 'unknown'
end
-- Records of ended processes are kept for a while, so that a log line can name the process of a lost worker.
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
