--@needs rates, json
-- Limits of a queue (field `q`), of all groups (`g`), of one group (`g:` and its name) and of one job name (`n:` and the name).
-- `limits` has the rules as JSON, `limitStates` has how much of them is used.

-- A rule has a part from code and a part that was set at run time. The second wins field by field. `base` has the defaults.
local function limits_in(text, base)
  if not text then return base or {} end
  local rule, parts = {}, table_in(text)
  for _, part in ipairs({ base or {}, parts.code or {}, parts.live or {} }) do
    for name, value in pairs(part) do rule[name] = value end
  end
  return rule
end

-- Until when a hold lasts, the state of the rate, and the state of the breaker: `!` if it is open, `?` if probe jobs have started. In
-- both states the next probe jobs may start at `till`.
local function limit_state(text)
  local blocked, mark, till, rate = string.match(text or '', '^([%d.]+)([!?]?)(%d*) ?(.*)$')
  return tonumber(blocked) or 0, rate or '', mark or '', tonumber(till) or 0
end

local function state_text(blocked, rate, mark, till)
  return string.format('%.0f', blocked) .. (mark ~= '' and mark .. string.format('%.0f', till) or '') .. ' ' .. rate
end

-- When the next probe jobs of a breaker may start. If the time is later than possible, the clock was set back: they may start now.
local function open_until(breaker, till, now) return till <= now + breaker.openFor and till or 0 end

-- How many jobs may start by the rate, the hold and the breaker. If none may, also in how many ms the next one may. Last, how much they may
-- cost together by the rate.
local function rate_room(rule, text, now, want)
  local blocked, rate, mark, till = limit_state(text)
  if rule.breaker and mark ~= '' then blocked, want = math.max(blocked, open_until(rule.breaker, till, now)), math.min(want, rule.breaker.probes) end
  local left, next_in, cost_left = want, 0, math.huge
  if rule.rate then left, next_in, cost_left = rate_left(rule.rate, rate, now) end
  -- A hold may be over before the rate lets a job start.
  if blocked > now then return 0, math.max(blocked - now, left < 1 and next_in or 0) end
  return math.max(0, math.min(left, want)), next_in, cost_left
end

-- Whether a job of this cost may start after jobs that cost `used`. If `max` was lowered below its cost, it needs all of it.
local function is_affordable(rule, cost, used, cost_left) return not rule.rate or used + math.min(cost, rule.rate.max) <= cost_left end

-- Charges the rate for `count` started jobs. Returns in how many ms the next one may start (0 if now), and the new state. `kept`: how
-- many of the granted jobs started, when the rest is given back. If none did, the next probe of a breaker may start now. `charge`
-- counts the starts.
local function charge_rate(field, rule, text, now, count, kept, charge)
  local blocked, rate, mark, till = limit_state(text)
  if not rule.rate and mark == '' then return 0, text end
  if rule.rate then rate = (charge or rate_charged)(rule.rate, rate, now, count) end
  if kept == 0 and mark == '?' then till = now elseif rule.breaker and mark ~= '' and not kept then mark, till = '?', now + rule.breaker.openFor end
  local after = state_text(blocked, rate, mark, till)
  redis.call('HSET', key_limitStates, field, after)
  local left, next_in = rate_room(rule, after, now, 1)
  return left < 1 and math.max(0, next_in) or 0, after
end

-- How many jobs of a line may run at once. `math.huge` if nothing limits them and they need not be counted.
local function most_running(rule)
  return rule.order == 'strict' and 1 or rule.concurrency or rule.fairness == 'in-flight' and rule_runningMax or math.huge
end

-- When the state of a line can be dropped. An open breaker stays until probe jobs have run.
local function state_over_at(rule, text, now)
  local blocked, rate, mark = limit_state(text)
  return rule.breaker and mark ~= '' and math.huge or math.max(blocked, rule.rate and rate ~= '' and rate_over_at(rule.rate, rate, now) or 0)
end

-- The fraction that follows the number of a line in `slots`, as text.
local function keeps_slot(rule)
  if rule.order ~= 'strict' then return rule.fairness == 'in-flight' and '.125' or '' end
  return rule.onDead == 'block' and '.5' or '.25'
end

-- Adds letters to the field `limited` of `meta`. They tell a claim what to look for: `r` a rate, `b` a hold or breaker, `n` limits by
-- name, `g` groups, `o` limits of one group, `a` aging, `s` what else makes claimed jobs start at once (as `r` and `b` do). If there is
-- any letter, `claim-limited` claims the jobs of the queue. A number at the end is the time until which `b` counts: when the last hold
-- is over, workers claim ahead again. A breaker has no such time.
local function flag_limits(flags, held_until)
  local before = redis.call('HGET', key_meta, 'limited') or ''
  local after, till = string.match(before, '^(%a*)(%d*)')
  if string.find(flags, 'b', 1, true) then
    local has_end = held_until and (till ~= '' or not string.find(after, 'b', 1, true))
    till = has_end and string.format('%.0f', math.ceil(math.max(held_until, tonumber(till) or 0))) or ''
  end
  for flag in string.gmatch(flags, '%a') do after = string.find(after, flag, 1, true) and after or after .. flag end
  if after .. till ~= before then redis.call('HSET', key_meta, 'limited', after .. till) end
end

-- The letters of a rule. A retry budget changes no claim. A job that was claimed ahead would hold a place that another worker could use.
-- Groups have turns, so others fill the slots; but running jobs are counted only if claimed ones run.
local function flags_of(field, rule)
  local kind = string.sub(field, 1, 2)
  local flags = kind == 'g:' and 'go' or (kind == 'g' or kind == 'q') and kind or 'n'
  local starts_at_once = rule.breaker or rule.paused or rule.fairness == 'in-flight' or rule.concurrency and string.byte(kind) ~= 103
  flags = flags .. (rule.rate and 'r' or '') .. (starts_at_once and 's' or '') .. (rule.aging and 'a' or '')
  for name in pairs(rule) do if name ~= 'retryBudget' then return flags end end
  return ''
end
