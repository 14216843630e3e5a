--@needs clock, bodies, lines
-- The bodies, without their data, of the jobs that may have waited longest: the first of each line. A job that has run before was
-- added long before it came to its line, so its age does not tell how long jobs wait.
local now = clock()
local heads = {}
local function look(ids)
  if #ids == 0 then return end
  for i, failed in ipairs(redis.call('HMGET', key_attempts, unpack(ids))) do
    local body = not failed and body_of(ids[i])
    if body then
      heads[#heads + 1] = string.match(body, '^[^\n]*\n[^\n]*\n[^\n]*\n')
      return
    end
  end
end

look(redis.call('LRANGE', key_wait, 0, arg_look - 1))
look(redis.call('LRANGE', key_suspects, 0, arg_look - 1))
look(redis.call('ZRANGE', key_grouped, 0, arg_look - 1))
for _, text in ipairs(redis.call('ZRANGE', key_ready, 0, arg_look - 1)) do
  local line = line_in(redis.call('HGET', key_lineStates, text))
  for _, number in ipairs(line and numbers_in(line, tonumber(text)) or {}) do
    local low, high = range_of(number)
    look(redis.call('ZRANGE', key_grouped, low, high, 'BYSCORE', 'LIMIT', 0, 1))
  end
end
local last = redis.call('ZRANGE', key_prioritized, -1, -1, 'WITHSCORES')
if #last > 0 then
  look(redis.call('ZRANGE', key_prioritized, 0, arg_look - 1))
  -- Jobs with the lowest priority wait longest.
  local lowest = math.floor(tonumber(last[2]) / rule_ranks) * rule_ranks
  look(redis.call('ZRANGE', key_prioritized, lowest, '+inf', 'BYSCORE', 'LIMIT', 0, arg_look))
end
return { now, heads }
