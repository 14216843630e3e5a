--@needs types, orders
check_types(key_processInfo)
local was_there = redis.call('ZREM', key_processes, arg_process)
redis.call('HDEL', key_processInfo, arg_process, orders_field(arg_process))
return was_there
