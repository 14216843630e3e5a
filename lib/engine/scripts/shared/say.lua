--@needs entry
local function say(count, fields, now)
  if arg_maxEvents == 0 or count == 0 then return end
  local last = redis.pcall('HINCRBY', key_meta, 'events', string.format('%d', count))
  if type(last) ~= 'number' or last < count or last > 9007199254740991 then
    -- Somebody wrote into it what is no such number: as if it had been deleted.
    last = count
    redis.call('HSET', key_meta, 'events', string.format('%d', last))
  end
  write_entry(last, count, fields, now)
end
