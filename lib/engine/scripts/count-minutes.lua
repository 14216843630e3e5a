--@needs types, count
-- Adds rows of counters, position by position. A new row may have more positions than the stored one. Answers 0 for a repetition.
check_types(key_minutes)

-- Adds the numbers in a row to those in `sums`, by position. Returns the last position. Most positions are empty, so only the others are read.
local function add_row(sums, text)
  local at = 1
  for commas, number in string.gmatch(text, '(,*)([^,]*)') do
    at = at + #commas
    if number ~= '' then sums[at] = (sums[at] or 0) + count_in(number) end
  end
  return at
end

local function sum(a, b)
  local sums, out = {}, {}
  for i = 1, math.max(add_row(sums, a), add_row(sums, b)) do
    local both = sums[i] or 0
    out[i] = both == 0 and '' or string.format('%.0f', both)
  end
  return table.concat(out, ',')
end

local lane = '~' .. arg_lane
if count_in(redis.call('HGET', key_minutes, lane)) >= arg_seq then return 0 end
local size = redis.call('HLEN', key_minutes)
local changed = { lane, string.format('%.0f', arg_seq) }
local written = {}
for i = 0, fields_last - fields_first do
  local field = ARGV[fields_first + i]
  local stored = written[field] or redis.call('HGET', key_minutes, field)
  if not stored and size >= arg_maxFields then
    field = string.match(field, '^%d+:') or '0:'
    stored = written[field] or redis.call('HGET', key_minutes, field)
  end
  if not stored then size = size + 1 end
  written[field] = sum(stored or '', ARGV[counts_first + i])
end
for field, numbers in pairs(written) do
  changed[#changed + 1] = field
  changed[#changed + 1] = numbers
  if #changed >= 1000 then
    redis.call('HSET', key_minutes, unpack(changed))
    changed = {}
  end
end
if #changed > 0 then redis.call('HSET', key_minutes, unpack(changed)) end
redis.call('EXPIRE', key_minutes, (rule_historyHours + 1) * 3600)
return 1
