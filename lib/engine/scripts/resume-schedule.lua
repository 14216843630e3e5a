--@needs types, schedule-state, next-time
check_types(key_upcoming, key_doorbell)
if redis.call('HEXISTS', key_schedules, arg_id) == 0 then return 'not-found' end
local state = read_state(arg_id)
if state.mode ~= 'paused' then return 'unchanged' end
if state.revision ~= arg_revision then return 'changed' end
state.revision = state.revision + 1
set_next(arg_id, state, arg_next)
write_state(arg_id, state)
return 'resumed'
