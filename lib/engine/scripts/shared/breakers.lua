-- Circuit breakers and retry budgets, in `limitStates`. The field `b:` and the name of the limit has what a closed breaker counts: the
-- completed and failed runs in each tenth of its window, as `tenth:completed:failed`. The field `r:` and the name has the time from
-- which the budget allows the next retry.

-- Counts runs for a closed breaker. Returns whether it must open.
local function count_runs(field, breaker, now, completed, failed)
  local width = breaker.window / 10
  local current = math.floor(now / width)
  local kept, all_completed, all_failed = {}, completed, failed
  for tenth, done, lost in string.gmatch(redis.call('HGET', key_limitStates, 'b:' .. field) or '', '(%d+):(%d+):(%d+)') do
    tenth = tonumber(tenth)
    if tenth > current - 10 and tenth <= current then
      all_completed, all_failed = all_completed + tonumber(done), all_failed + tonumber(lost)
      if tenth == current then
        completed, failed = completed + tonumber(done), failed + tonumber(lost)
      else
        kept[#kept + 1] = string.format('%.0f:%s:%s', tenth, done, lost)
      end
    end
  end
  if all_failed >= breaker.failures and all_failed >= breaker.ratio * (all_completed + all_failed) then return true end
  kept[#kept + 1] = string.format('%.0f:%.0f:%.0f', current, completed, failed)
  redis.call('HSET', key_limitStates, 'b:' .. field, table.concat(kept, ' '))
  return false
end

-- Assigns times to this many retries: one every `per / max` ms, but `max` of them at once after an idle time. Returns in how many
-- ms the first one may run, and how much later each further one.
local function book_retries(field, budget, now, count)
  local each = budget.per / budget.max
  local from = math.max(now, tonumber(redis.call('HGET', key_limitStates, 'r:' .. field) or nil) or 0)
  redis.call('HSET', key_limitStates, 'r:' .. field, string.format('%.3f', from + count * each))
  return from + each - budget.per - now, each
end
