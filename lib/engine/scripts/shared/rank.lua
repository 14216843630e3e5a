-- A priority as somebody has written it; 0 is none, and so is whatever is no priority.
local function priority_in(value)
  local number = tonumber(value)
  return number and number >= 1 and number <= 2097151 and number % 1 == 0 and number or 0
end

-- First in first out inside one priority: 21 bits of priority above 32 bits of sequence are exact in a double.
local function rank(priority)
  return priority * 4294967296 + redis.call('HINCRBY', key_meta, 'ranks', 1) % 4294967296
end
