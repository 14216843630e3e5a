--@needs workers
-- Everything of the queue goes, in the background of Redis. The lanes of producers expire by themselves. The number of the last
-- event stays: whoever follows the events goes on behind it, and would wait for it in vain if the numbers began anew.
local workers = leased_workers()
if table.concat(workers, '\n') ~= arg_workers then return 'again' end
local last = redis.pcall('HGET', key_meta, 'events')
if arg_force == 0 then
  for i = more_first, more_first + 2 * #workers - 1, 2 do
    if redis.call('SCARD', KEYS[i]) > 0 then return 'active' end
  end
end
redis.call('UNLINK', unpack(KEYS))
if type(last) == 'string' then redis.call('HSET', key_meta, 'events', last) end
return 'obliterated'
