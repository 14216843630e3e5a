--@needs count
-- The record of a producer: the number of its last call, and the ids of duplicates in that call.

-- Whether this number is higher than the one in `remembered`, which is the reply of GET.
local function is_newer(seq, remembered)
  return not remembered or (tonumber(string.match(remembered, '^%d+')) or math.huge) < seq
end

local function remember(seq, duplicates)
  redis.call('SET', key_lane, seq .. '\n' .. duplicates, 'PX', math.max(arg_rememberMs, 1))
end

-- The number of the last call and its duplicates. The number is 0 if there was no call, and infinity if the record is unreadable.
-- A repetition rewrites the record: WAIT on a new connection counts only writes of that connection, so there must be a write.
local function recall(seq)
  local remembered = redis.call('GET', key_lane)
  if not remembered then return 0 end
  local last, duplicates = string.match(remembered, '^(%d+)\n(.*)$')
  last = count_in(last, math.huge)
  if last == seq then redis.call('SET', key_lane, remembered, 'KEEPTTL') end
  return last, duplicates
end
