-- Circuit breakers and retry budgets, in `limitStates`. The field `b:` and the name of the limit has what a closed breaker counts: the
-- completed and failed runs in each tenth of its window, as `tenth:completed:failed`. The field `r:` and the name has the time from
-- which the budget allows the next retry. The digits after its three decimals are the time when that was written; older versions read
-- both as one number. If the budget has a percentage, the field `f:` and the name counts first attempts in the form of `b:`.

-- Counts runs in a field, by tenths of a window. Returns how many completed and failed in that window.
local function count_runs(field, window, now, completed, failed)
  local width = window / 10
  local current = math.floor(now / width)
  local kept, all_completed, all_failed = {}, completed, failed
  for tenth, done, lost in string.gmatch(redis.call('HGET', key_limitStates, field) or '', '(%d+):(%d+):(%d+)') do
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
  kept[#kept + 1] = string.format('%.0f:%.0f:%.0f', current, completed, failed)
  redis.call('HSET', key_limitStates, field, table.concat(kept, ' '))
  return all_completed, all_failed
end

-- Counts runs for a closed breaker. Returns whether it must open.
local function must_open(field, breaker, now, completed, failed)
  completed, failed = count_runs('b:' .. field, breaker.window, now, completed, failed)
  return failed >= breaker.failures and failed >= breaker.ratio * (completed + failed)
end

-- From when the budget allows the next retry. If the clock was set back since then, that time is too late by as much.
local function budget_from(field, now)
  local from, at = string.match(redis.call('HGET', key_limitStates, 'r:' .. field) or '', '^(%d+%.%d%d%d)(%d*)$')
  return (tonumber(from) or 0) - math.max(0, (tonumber(at) or 0) - now)
end

-- By how many ms a budget would delay a retry now.
local function retry_delay(field, budget, now)
  if not budget then return 0 end
  return math.max(0, math.ceil(budget_from(field, now) + budget.per / budget.max - budget.per - now))
end

-- Assigns times to this many retries: one every `per / max` ms, but `max` of them at once after an idle time. Each first attempt
-- brings the next time forward by its percentage of a retry. Retries that are allowed this way, and do not happen, are still allowed
-- while the first attempts are younger than `per`. Returns in how many ms the first retry may run, and how much later each further one.
local function book_retries(field, budget, now, count, firsts)
  local each = budget.per / budget.max
  local from, earned = budget_from(field, now), 0
  if budget.percent then
    from = from - firsts * each * budget.percent / 100
    earned = count_runs('f:' .. field, budget.per, now, firsts, 0) * each * budget.percent / 100
  end
  from = math.max(now - earned, from)
  redis.call('HSET', key_limitStates, 'r:' .. field, string.format('%.3f%.0f', from + count * each, now))
  return from + each - budget.per - now, each
end
