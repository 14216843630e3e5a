--@needs types, clock, orders
-- Stores an order for a live process. The process gets it in the answers of `register` until it has obeyed.
check_types(key_processInfo)
local ends = redis.call('ZSCORE', key_processes, arg_process)
if not ends or tonumber(ends) <= clock() then return 0 end
local field = orders_field(arg_process)
local orders = redis.call('HGET', key_processInfo, field) or ''
if not string.find('\n' .. orders, '\n' .. arg_id .. ' ', 1, true) then
  -- A process that does not answer gets the latest orders.
  while #orders > arg_maxBytes do orders = string.sub(orders, string.find(orders, '\n', 1, true) + 1) end
  redis.call('HSET', key_processInfo, field, orders .. arg_id .. ' ' .. arg_order .. '\n')
end
return 1
