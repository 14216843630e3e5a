--@needs types, clock, ring, say
-- Answers whether this changed anything.
check_types(key_doorbell)
local now = clock()
local paused = redis.call('HEXISTS', key_meta, 'paused') == 1
if paused == (arg_pause == 1) then return 0 end
if arg_pause == 1 then
  redis.call('HSET', key_meta, 'paused', now)
  say(1, { 'paused', '' }, now)
else
  redis.call('HDEL', key_meta, 'paused')
  ring()
  say(1, { 'resumed', '' }, now)
end
return 1
