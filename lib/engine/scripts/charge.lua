--@needs types, clock, lines, limits, corrections, bell
-- Stops starts for a while, ends such a hold and closes a breaker (ms below 0), or corrects the count of a rate. Arguments: fields
-- of `limitStates`, each with ms, count, and how many ms ago the starts were counted that a negative count takes back. A name or group
-- gets a line, and its state is deleted with that line when it is no longer needed.
check_types(key_meta, key_limits, key_limitStates, key_lines, key_lineStates, key_ready, key_resting, key_doorbell)
local now = clock()
local texts = redis.call('HMGET', key_limits, 'g')
for i = changes_first, changes_last, 4 do
  local field, hold_ms, count, ago = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local kind = string.sub(field, 1, 2)
  local text, state = redis.call('HGET', key_limits, field), redis.call('HGET', key_limitStates, field)
  local rule = limits_in(text, kind == 'g:' and limits_in(texts[1]) or nil)
  local blocked, rate, mark, till = limit_state(state)
  if hold_ms > 0 then
    blocked = math.max(blocked, now + hold_ms)
    flag_limits(kind == 'n:' and 'bn' or kind == 'g:' and 'bg' or 'b')
    if kind == 'n:' and not text then redis.call('HSET', key_limits, field, '{}') end
  elseif hold_ms < 0 then
    blocked, mark = 0, ''
  end
  if rule.rate and count ~= 0 then rate = rate_corrected(rule.rate, rate, now, count, now - ago) end
  if hold_ms > 0 or hold_ms == 0 and rule.rate or hold_ms < 0 and state then
    redis.call('HSET', key_limitStates, field, state_text(blocked, rate, mark, till))
    local number = (kind == 'n:' or kind == 'g:') and numbers_of({ field })[field]
    if number and hold_ms < 0 then look_at_line(number) end
    if hold_ms < 0 then ring() end
  end
end
return 1
