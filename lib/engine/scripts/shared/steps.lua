-- Lua unpacks no more than some 8,000 values at once; beyond that it fails, behind whatever was written before.
local function in_steps(list, act)
  for first = 1, #list, 1000 do act(unpack(list, first, math.min(first + 999, #list))) end
end
