--@needs workers
-- The workers in `arg_workers`, whose keys the caller declares. Nil if another worker has got a lease in the meantime.
local function named_workers()
  local names, is_named = {}, {}
  for name in string.gmatch(arg_workers, '[^\n]+') do
    names[#names + 1] = name
    is_named[name] = true
  end
  for _, worker in ipairs(leased_workers()) do
    if not is_named[worker] then return nil end
  end
  return names
end
