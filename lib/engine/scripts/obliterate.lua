--@needs workers
-- Deletes all data of the queue. Redis frees the memory in the background. The lanes of producers expire on their own. The format
-- number stays, because processes may still use the queue. The number of the last event stays too: readers continue after it, and
-- would miss all events if the numbers started again.
local workers = leased_workers()
if table.concat(workers, '\n') ~= arg_workers then return 'again' end
local kept = redis.pcall('HMGET', key_meta, 'events', 'format')
if arg_force == 0 then
  for i = more_first, more_first + 2 * #workers - 1, 2 do
    if redis.call('SCARD', KEYS[i]) > 0 then return 'active' end
  end
end
redis.call('UNLINK', unpack(KEYS))
if kept[1] then redis.call('HSET', key_meta, 'events', kept[1]) end
if kept[2] then redis.call('HSET', key_meta, 'format', kept[2]) end
return 'obliterated'
