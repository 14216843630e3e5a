-- Lua cannot unpack more than about 8,000 values at once. It would fail after earlier writes, so long lists are passed in steps.
local function in_steps(list, act)
  for first = 1, #list, 1000 do act(unpack(list, first, math.min(first + 999, #list))) end
end
