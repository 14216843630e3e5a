--@needs types, schedule-state
check_types(key_upcoming)
if redis.call('HEXISTS', key_schedules, arg_id) == 0 then return 'not-found' end
local state = read_state(arg_id)
if state.mode ~= '' then return 'unchanged' end
state.mode = 'paused'
state.revision = state.revision + 1
redis.call('ZREM', key_upcoming, arg_id)
write_state(arg_id, state)
return 'paused'
