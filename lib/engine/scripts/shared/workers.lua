-- The workers that have a lease. An invalid name was written by another program: the caller cannot name its keys and would ask
-- again forever, so it is skipped.
local function leased_workers()
  local names = {}
  for _, name in ipairs(redis.call('ZRANGE', key_workers, 0, -1)) do
    if string.find(name, '^[!-~]+$') then names[#names + 1] = name end
  end
  return names
end

-- Which of these jobs run now, by id. More keys of the call are the active sets of the workers.
local function active_among(ids)
  local active = {}
  for i = more_first, more_last do
    for at, is_member in ipairs(redis.call('SMISMEMBER', KEYS[i], unpack(ids))) do
      if is_member == 1 then active[ids[at]] = true end
    end
  end
  return active
end
