--@needs types, clock, lines, limits, breakers, shares, bell, event
-- Counts ended runs for circuit breakers and retry budgets. For each report, returns the change of the breaker, the times of the first and
-- of each further retry, and for a changed shared limit its queues: their keys may be on other nodes, so the caller runs this script for
-- each of them with `sharedEvents`.
check_types(key_meta, key_limits, key_limitStates, key_lines, key_lineStates, key_ready, key_resting, key_shares, key_doorbell)
local now, events, answers = clock(), { count = 0 }, {}

local function write_event(kind, field, ms)
  local whose = string.sub(field, 1, 2) == 's:' and 'limit' or 'name'
  say(events, kind, 1, '', whose, string.sub(field, 3), 'delay', string.format('%.0f', ms))
  if kind == 'breakerClosed' then ring() end
end

for i = sharedEvents_first, sharedEvents_last, 3 do write_event(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])) end

for i = reports_first, reports_last, 6 do
  local field, completed, failed = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local retries, firsts, closes = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]), ARGV[i + 5] == '1'
  local rule, change, first, each = limits_in(redis.call('HGET', key_limits, field)), '', 0, 0
  local kind, users = string.sub(field, 1, 2), ''
  local breaker = rule.breaker
  if breaker then
    local blocked, rate, mark, till = limit_state(redis.call('HGET', key_limitStates, field))
    if closes then
      if mark ~= '' then change, mark = 'closed', '' end
    elseif mark == '' then
      if must_open(field, breaker, now, completed, failed) then change, mark, till = 'opened', '!', now + breaker.openFor end
    elseif mark == '?' and failed > 0 then
      change, mark, till = 'tried', '!', now + breaker.openFor
    elseif mark == '?' and completed > 0 then
      change, mark = 'closed', ''
    end
    if change ~= '' then
      redis.call('HSET', key_limitStates, field, state_text(blocked, rate, mark, till))
      redis.call('HDEL', key_limitStates, 'b:' .. field)
      -- The state of a name is deleted together with its line.
      local number = kind == 'n:' and numbers_of({ field })[field]
      if number then flag_limits('bn') end
      if kind == 's:' then
        users = users_of(string.sub(field, 3), now)
      elseif change == 'opened' then
        write_event('breakerOpened', field, breaker.openFor)
      elseif change == 'closed' then
        write_event('breakerClosed', field, 0)
        if number then look_at_line(number) end
      end
    end
  end
  if rule.retryBudget and (retries ~= 0 or firsts > 0) then first, each = book_retries(field, rule.retryBudget, now, retries, firsts) end
  answers[#answers + 1] = { change, string.format('%.3f', first), string.format('%.3f', each), users, breaker and breaker.openFor or 0 }
end
write_events(events, now)
return answers
