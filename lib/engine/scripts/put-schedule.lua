-- Writes a schedule, if it is still as the caller saw it; 0 is the revision of one that is not there.
for _, key in ipairs({ key_schedules, key_scheduled, key_doorbell }) do redis.call('ZCARD', key) end
local exists = redis.call('HEXISTS', key_schedule, arg_id) == 1
local state = read_state(arg_id)
if (exists and state.revision or 0) ~= arg_revision then return 'changed' end
-- Begins with the time, so that one made anew is never taken for the one that was removed.
if not exists then state = { revision = now, fired = 0, last = -1, mode = '', job = '' } end
state.revision = state.revision + 1
-- What a person has paused stays so when a release says it anew.
if state.mode ~= 'paused' and arg_keep == 0 then set_next(arg_id, state, arg_next) end
redis.call('HSET', key_schedule, arg_id, arg_record)
write_state(arg_id, state)
redis.call('ZADD', key_scheduled, 'NX', now, arg_id)
return 'written'
