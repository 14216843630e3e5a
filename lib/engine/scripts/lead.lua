--@needs types, clock
-- One process leads until its lease ends. Every caller gets the state that the leader stored last.
check_types(key_alerts)
local now = clock()
local row = redis.call('HMGET', key_alerts, 'owner', 'until', 'state')
local state = row[3] or ''
-- Another program may have written to this key. An end that is not a number counts as over.
local ends = tonumber(row[2] or '') or 0
if row[1] and row[1] ~= arg_owner and ends > now then return { 0, state } end
if arg_state ~= '' then state = arg_state end
redis.call('HSET', key_alerts, 'owner', arg_owner, 'until', now + arg_leaseMs, 'state', state)
redis.call('PEXPIRE', key_alerts, arg_keepMs)
return { arg_leaseMs > 0 and 1 or 0, state }
