--@needs names, count, event
-- How often each of these jobs failed, and how many workers it lost. A list is empty if no job of the queue did.
local function counts_of(ids)
  local there = #ids > 0 and redis.call('EXISTS', key_attempts, key_stalls) or 0
  if there == 0 then return {}, {} end
  local has_stalls = redis.call('EXISTS', key_stalls) == 1
  return (there == 2 or not has_stalls) and redis.call('HMGET', key_attempts, unpack(ids)) or {},
    has_stalls and redis.call('HMGET', key_stalls, unpack(ids)) or {}
end

-- Writes the event of claimed jobs. `failed`: earlier attempts of each job, or empty if none has failed.
local function say_active(events, ids, claimed_ids, name, bodies, failed)
  local names = name or table.concat(add_names({}, bodies), '\n')
  if #failed == 0 then return say(events, 'active', #ids, claimed_ids, 'name', names) end
  local attempts = {}
  for i = 1, #failed do attempts[i] = count_in(failed[i]) + 1 end
  say(events, 'active', #ids, claimed_ids, 'name', names, 'attempt', table.concat(attempts, '\n'))
end
