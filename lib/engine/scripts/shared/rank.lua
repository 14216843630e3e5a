--@needs count
-- First in first out inside one priority: 21 bits of priority above 32 bits of sequence are exact in a double.
local function rank(priority)
  return priority * 4294967296 + add_to(key_meta, 'ranks', 1) % 4294967296
end
