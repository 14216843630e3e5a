-- Answers whether this changed anything.
redis.call('ZCARD', key_doorbell)
local paused = redis.call('HEXISTS', key_meta, 'paused') == 1
if paused == (arg_pause == 1) then return 0 end
if arg_pause == 1 then
  redis.call('HSET', key_meta, 'paused', now)
  say(1, { 'paused', '' })
else
  redis.call('HDEL', key_meta, 'paused')
  ring()
  say(1, { 'resumed', '' })
end
return 1
