--@needs types, clock, orders
-- Renews the record of a process for one lease, and answers with its orders. If nothing has changed, an idle process costs only
-- three commands. A server that has lost the record answers `unknown`, and `added` when the record is written again.
local now = clock()
local field = orders_field(arg_process)
local orders, record = unpack(redis.call('HMGET', key_processInfo, field, arg_process))
orders = orders or ''
local kind = 'registered'
if arg_info == '' then
  local renewed = redis.call('ZADD', key_processes, 'XX', 'CH', now + arg_leaseMs, arg_process)
  if renewed == 0 or not record then return { 'unknown', '' } end
else
  -- Records of ended processes are kept for a while, so that a log line can name the process of a lost worker.
  local gone = redis.call('ZRANGE', key_processes, '-inf', now - arg_rememberMs, 'BYSCORE', 'LIMIT', 0, 100)
  check_types(key_processInfo)
  if #gone > 0 then
    redis.call('ZREM', key_processes, unpack(gone))
    redis.call('HDEL', key_processInfo, unpack(gone))
    for i, process in ipairs(gone) do gone[i] = orders_field(process) end
    redis.call('HDEL', key_processInfo, unpack(gone))
  end
  if redis.call('ZADD', key_processes, now + arg_leaseMs, arg_process) == 1 then kind = 'added' end
  redis.call('HSET', key_processInfo, arg_process, arg_info)
  redis.call('PEXPIRE', key_processes, arg_keepMs)
  redis.call('PEXPIRE', key_processInfo, arg_keepMs)
end
if orders == '' or arg_obeyed == '' then return { kind, orders } end
local at = string.find('\n' .. orders, '\n' .. arg_obeyed .. ' ', 1, true)
if not at then return { kind, orders } end
local left = string.sub(orders, string.find(orders, '\n', at, true) + 1)
if left == '' then
  redis.call('HDEL', key_processInfo, field)
else
  redis.call('HSET', key_processInfo, field, left)
end
return { kind, left }
