local function next_schedule(now)
  local first = redis.call('ZRANGE', key_upcoming, '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
  return first[2] and math.ceil(tonumber(first[2]) - now) or -1
end
