-- The number in this text, or `otherwise` if it is not a whole number from 0 as Redis writes it. Other programs may have written
-- it.
local function count_in(text, otherwise)
  local number = text and (text == '0' or string.find(text, '^[1-9]%d*$')) and tonumber(text)
  return number and number <= 9007199254740991 and number or otherwise or 0
end

-- A priority. Anything that is not a priority counts as 0, which means none.
local function priority_in(value)
  local number = tonumber(value)
  return number and number >= 1 and number <= rule_priorityMax and number % 1 == 0 and number or 0
end

local function is_count(text) return count_in(text, -1) >= 0 end
local function is_priority(text) return priority_in(text) > 0 end

-- Adds to a counter in a hash whose type was checked before. An unreadable counter starts again: this runs after other writes and
-- must not fail.
local function add_to(key, field, count)
  local sum = redis.pcall('HINCRBY', key, field, count)
  count = tonumber(count)
  if type(sum) == 'number' and sum >= count and sum <= 9007199254740991 then return sum end
  redis.call('HSET', key, field, string.format('%.0f', count))
  return count
end
