--@needs workers
-- The workers that the caller has named, whose keys it gives along; nil where another one has a lease: it came in between.
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
