-- Takes a job out of its line, unless it was `found` elsewhere. Only a list must be searched, and a long line takes long: last.
local function take_out(id, found)
  found = found + redis.call('ZREM', key_prioritized, id) + redis.call('ZREM', key_delayed, id)
  if found == 0 then found = redis.call('LREM', key_suspects, 1, id) end
  if found == 0 then found = redis.call('LREM', key_wait, 1, id) end
  return found > 0
end
