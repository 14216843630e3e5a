--@needs workers, json
-- Deletes all data of the queue. Redis frees the memory in the background. The lanes of producers expire on their own. The format
-- number stays, because processes may still use the queue. The number of the last event stays too: readers continue after it, and
-- would miss all events if the numbers started again. The limits in the code stay: the running processes have written them when they
-- started.
local workers = leased_workers()
if table.concat(workers, '\n') ~= arg_workers then return 'again' end
local kept = redis.pcall('HMGET', key_meta, 'events', 'format', 'limited')
local found, rules = redis.pcall('HGETALL', key_limits), {}
for i = 1, found.err and 0 or #found, 2 do
  local code = table_in(found[i + 1]).code
  if code then rules[#rules + 1], rules[#rules + 2] = found[i], cjson.encode({ code = code }) end
end
if arg_force == 0 then
  for i = more_first, more_first + 2 * #workers - 1, 2 do
    if redis.call('SCARD', KEYS[i]) > 0 then return 'active' end
  end
end
redis.call('UNLINK', unpack(KEYS))
if kept[1] then redis.call('HSET', key_meta, 'events', kept[1]) end
if kept[2] then redis.call('HSET', key_meta, 'format', kept[2]) end
if kept[3] and #rules > 0 then
  redis.call('HSET', key_limits, unpack(rules))
  redis.call('HSET', key_meta, 'limited', kept[3])
end
return 'obliterated'
