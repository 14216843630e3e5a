--@needs count
-- How long the leases of a worker are, by its record; where that says nothing that can be, as long as those of the caller.
local function lease_of(text)
  local ms = count_in(text)
  return ms >= 100 and ms <= 3600000 and ms or arg_leaseMs
end
