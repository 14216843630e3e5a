--@needs names, count, event
-- How often each of these jobs failed, and how many workers it lost. A list is empty if no job of the queue did.
local function counts_of(ids)
  local function of(key) return #ids > 0 and redis.call('EXISTS', key) == 1 and redis.call('HMGET', key, unpack(ids)) or {} end
  return of(key_attempts), of(key_stalls)
end

-- Writes the event of claimed jobs. `failed`: earlier attempts of each job, or empty if none has failed.
local function say_active(events, ids, claimed_ids, name, bodies, failed)
  local names = name or table.concat(add_names({}, bodies), '\n')
  if #failed == 0 then return say(events, 'active', #ids, claimed_ids, 'name', names) end
  local attempts = {}
  for i = 1, #failed do attempts[i] = count_in(failed[i]) + 1 end
  say(events, 'active', #ids, claimed_ids, 'name', names, 'attempt', table.concat(attempts, '\n'))
end
