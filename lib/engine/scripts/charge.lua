--@needs types, clock, limits, rates
-- Holds starts back for a while, or corrects what was counted for a rate: for each field of `limitStates` the ms and the count.
check_types(key_meta, key_limits, key_limitStates)
local now = clock()
local texts = redis.call('HMGET', key_limits, 'g')
for i = changes_first, changes_last, 3 do
  local field, hold_ms, count = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local kind = string.sub(field, 1, 2)
  local text = redis.call('HGET', key_limits, field)
  local rule = limits_in(text, kind == 'g:' and limits_in(texts[1]) or nil)
  local blocked, rate = limit_state(redis.call('HGET', key_limitStates, field))
  if hold_ms > 0 then
    blocked = math.max(blocked, now + hold_ms)
    flag_limits(kind == 'n:' and 'bn' or kind == 'g:' and 'bg' or 'b')
    if kind == 'n:' and not text then redis.call('HSET', key_limits, field, '{}') end
  end
  if rule.rate and count ~= 0 then rate = rate_charged(rule.rate, rate, now, count) end
  if hold_ms > 0 or rule.rate then redis.call('HSET', key_limitStates, field, state_text(blocked, rate)) end
end
return 1
