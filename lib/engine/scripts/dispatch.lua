--@needs steps
-- Moves due tasks to the end of a list. Both keys belong to the user, so their values may be of any type.
local function refused(reply, which, key)
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then return reply end
  return { 'wrong-type', which, redis.call('TYPE', key).ok }
end
local delayed = redis.pcall('ZCARD', key_delayedTasks)
if type(delayed) == 'table' then return refused(delayed, 'delayedTasks', key_delayedTasks) end
local ready = redis.pcall('LLEN', key_readyTasks)
if type(ready) == 'table' then return refused(ready, 'readyTasks', key_readyTasks) end

-- Scores may have fractions, so the time has them too.
local time = redis.call('TIME')
local now = (time[1] + time[2] / 1000000) * arg_perSecond
local limit = arg_limit
if arg_maxReady > 0 then limit = math.min(limit, arg_maxReady - ready) end
local due = {}
-- A negative LIMIT would mean no limit.
if limit > 0 then
  due = redis.call('ZRANGE', key_delayedTasks, '-inf', string.format('%.17g', now), 'BYSCORE', 'LIMIT', 0, limit)
end
if #due > 0 then
  in_steps(due, function(...) ready = redis.call('RPUSH', key_readyTasks, ...) end)
  redis.call('ZREMRANGEBYRANK', key_delayedTasks, 0, #due - 1)
end

local first = redis.call('ZRANGE', key_delayedTasks, 0, 0, 'WITHSCORES')
local due_in = first[2] and (tonumber(first[2]) - now) * 1000 / arg_perSecond or math.huge
-- A task with the score inf is never due, and no timer can wait that long.
if due_in > 1e15 then due_in = -1 else due_in = math.max(0, math.ceil(due_in)) end
return { 'dispatched', #due, delayed - #due, ready, due_in }
