--@needs types, clock, line, bell
check_types(key_meta, key_wait, key_prioritized, key_doorbell, key_priorities)
local now = clock()
-- Limited, so that one call does not take long and fits what Lua can unpack.
local promoted = promote_due(math.max(0, math.min(arg_limit, rule_claimMax)), now)
if promoted > 0 then ring() end
return { promoted, next_due(now) }
