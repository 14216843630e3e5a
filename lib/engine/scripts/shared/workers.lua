-- The workers that have a lease. An invalid name was written by another program: the caller cannot name its keys and would ask
-- again forever, so it is skipped.
local function leased_workers()
  local names = {}
  for _, name in ipairs(redis.call('ZRANGE', key_workers, 0, -1)) do
    if string.find(name, '^[!-~]+$') then names[#names + 1] = name end
  end
  return names
end
