-- Reads entries of the stream: the number of the last event, and the time it was written, which is the first field.
local function number_of(entry)
  return tonumber(string.match(entry[1], '^%d+'))
end

local function written_at(entry)
  return tonumber(entry[2][2]) or 0
end
