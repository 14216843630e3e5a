--@needs types, clock, lines, limits, corrections, bell
-- Stops starts for a while, ends such a hold and closes a breaker (ms below 0), or corrects the count of a rate. Arguments: fields
-- of `limitStates`, each with ms, count, when the starts were counted that a negative count takes back (-1: now), and 1 if the probes of
-- a breaker called no handler: then the next ones may start now. A name or group gets a line, and its state is deleted with that line
-- when it is no longer needed.
check_types(key_meta, key_limits, key_limitStates, key_lines, key_lineStates, key_ready, key_resting, key_doorbell)
local now = clock()
local texts = redis.call('HMGET', key_limits, 'g')
for i = changes_first, changes_last, 5 do
  local field, hold_ms, count, at = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local kind = string.sub(field, 1, 2)
  local text, state = redis.call('HGET', key_limits, field), redis.call('HGET', key_limitStates, field)
  local rule = limits_in(text, kind == 'g:' and limits_in(texts[1]) or nil)
  local blocked, rate, mark, till = limit_state(state)
  local has_probe = ARGV[i + 4] == '1' and mark == '?'
  if has_probe then till = now end
  if hold_ms > 0 then
    blocked = math.max(blocked, now + hold_ms)
    flag_limits(kind == 'n:' and 'bn' or kind == 'g:' and 'bg' or 'b', blocked)
    if kind == 'n:' and not text then redis.call('HSET', key_limits, field, '{}') end
  elseif hold_ms < 0 then
    blocked, mark = 0, ''
  end
  if rule.rate and count ~= 0 then rate = rate_corrected(rule.rate, rate, now, count, at < 0 and now or at) end
  -- Without a state there is nothing to take back.
  if hold_ms > 0 or hold_ms == 0 and (rule.rate and (state or count > 0) or has_probe) or hold_ms < 0 and state then
    local after = state_text(blocked, rate, mark, till)
    redis.call('HSET', key_limitStates, field, after)
    local number = (kind == 'n:' or kind == 'g:') and numbers_of({ field })[field]
    -- The workers wait for the time at which the limit would have let the next job start. It may cost more than was left.
    local room_before, _, left_before = rate_room(rule, state, now, 1)
    local room, _, left = rate_room(rule, after, now, 1)
    local opens = hold_ms < 0 or room >= 1 and (room_before < 1 or left > left_before)
    if number and opens then look_at_line(number) end
    if opens then ring() end
  end
end
return 1
