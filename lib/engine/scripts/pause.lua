--@needs types, clock, ring, say
-- Answers whether this changed anything.
check_types(key_meta, key_doorbell)
local now = clock()
local paused = redis.call('HEXISTS', key_meta, 'paused') == 1
if paused == (arg_pause == 1) then return 0 end
if arg_pause == 1 then
  local workers = redis.call('ZRANGE', key_workers, 0, -1)
  if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return 'again' end
  local is_known = {}
  for i = more_first, more_last do is_known[i] = redis.call('HEXISTS', KEYS[i], 'seq') == 1 end
  redis.call('HSET', key_meta, 'paused', now)
  -- Whoever holds jobs may have some that have not started: it takes this mark away once it starts no more of them.
  for i = more_first, more_last do
    if is_known[i] then redis.call('HSET', KEYS[i], 'pause', now) end
  end
  say(1, { 'paused', '' }, now)
else
  redis.call('HDEL', key_meta, 'paused')
  ring()
  say(1, { 'resumed', '' }, now)
end
return 1
