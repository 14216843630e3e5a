-- Circuit breakers and retry budgets, in `limitStates`. The field `b:` and the name of the limit has what a closed breaker counts: the
-- completed and failed runs in each tenth of its window, as `tenth:completed:failed`. The field `r:` and the name has the time from
-- which the budget allows the next retry. The digits after its three decimals are the time when that was written; older versions read
-- both as one number. If the budget has a percentage, the field `f:` and the name counts first attempts in the form of `b:`.

-- How many runs a field counts in a window, then those of the current tenth, its number, and the other tenths as texts.
local function runs_in(field, window, now)
  local width = window / 10
  local current = math.floor(now / width)
  local kept, all_completed, all_failed, completed, failed = {}, 0, 0, 0, 0
  for tenth, done, lost in string.gmatch(redis.call('HGET', key_limitStates, field) or '', '(%d+):(%d+):(%d+)') do
    tenth = tonumber(tenth)
    if tenth > current - 10 and tenth <= current then
      all_completed, all_failed = all_completed + tonumber(done), all_failed + tonumber(lost)
      if tenth == current then completed, failed = completed + tonumber(done), failed + tonumber(lost)
      else kept[#kept + 1] = string.format('%.0f:%s:%s', tenth, done, lost) end
    end
  end
  return all_completed, all_failed, completed, failed, current, kept
end

-- Counts runs in a field, by tenths of a window. Returns how many completed and failed in that window.
local function count_runs(field, window, now, completed, failed)
  local all_completed, all_failed, its_completed, its_failed, current, kept = runs_in(field, window, now)
  kept[#kept + 1] = string.format('%.0f:%.0f:%.0f', current, its_completed + completed, its_failed + failed)
  redis.call('HSET', key_limitStates, field, table.concat(kept, ' '))
  return all_completed + completed, all_failed + failed
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

-- From when a budget allows the next retry, and the ms of a retry by `max` alone, and by the percentage too. `firsts` of the `counted` first
-- attempts of the last `per` are new. Each allows its percentage of a retry, which is still allowed while they are younger than `per`.
-- But if retries wait, their times already count on as many first attempts as in the last `per`.
local function budget_in(field, budget, now, firsts, counted)
  local each, from, share = budget.per / budget.max, budget_from(field, now), (budget.percent or 0) / 100
  local earned = counted * share
  if from < now + budget.per then from = from - firsts * share * each end
  return math.max(now - earned * each, from), each, budget.per / (budget.max + earned)
end

-- How many retries may run at once, and in how many ms the one after them.
local function next_retry(budget, now, from, each, late)
  local ready = (now + budget.per - from) / each
  if ready < 0 then return 0, from - budget.per - now + late end
  local whole = math.floor(ready)
  return whole, (1 - ready + whole) * late
end

-- By how many ms a budget would delay a retry now.
local function retry_delay(field, budget, now)
  if not budget then return 0 end
  local whole, wait = next_retry(budget, now, budget_in(field, budget, now, 0, runs_in('f:' .. field, budget.per, now)))
  return whole > 0 and 0 or math.ceil(wait)
end

-- Assigns times to this many retries: `max` of them at once after an idle time, and the percentage of the first attempts. The others run
-- one by one, so many per `per`. A number below 0 takes retries back. Returns in how many ms the first retry may run, and how much later
-- each further one.
local function book_retries(field, budget, now, count, firsts)
  local counted = budget.percent and count_runs('f:' .. field, budget.per, now, firsts, 0) or 0
  local from, each, late = budget_in(field, budget, now, firsts, counted)
  local whole, wait = next_retry(budget, now, from, each, late)
  if count > whole then from = now + budget.per + wait + (count - whole - 1) * late
  else from = from + count * (from < now + budget.per and each or late) end
  redis.call('HSET', key_limitStates, 'r:' .. field, string.format('%.3f%.0f', from, now))
  return wait - whole * late, late
end
