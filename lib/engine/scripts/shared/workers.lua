-- The workers that have a lease. A name that no worker can have was written by others: the caller cannot name its keys, and
-- would ask again without end.
local function leased_workers()
  local names = {}
  for _, name in ipairs(redis.call('ZRANGE', key_workers, 0, -1)) do
    if string.find(name, '^[!-~]+$') then names[#names + 1] = name end
  end
  return names
end
