--@needs rates
-- What limits a queue (`q`), all groups (`g`), one group (`g:` and its name) and the jobs of one name (`n:` and the name): the rules in
-- `limits`, as JSON, and how much of them is used in `limitStates`.

local function table_in(text)
  local is_json, read = pcall(cjson.decode, text or '')
  return is_json and type(read) == 'table' and read or {}
end

-- A rule has a part from code and one that was set while it runs, which wins field by field; `base` is what neither of them says.
local function limits_in(text, base)
  if not text then return base or {} end
  local rule = {}
  for name, value in pairs(base or {}) do rule[name] = value end
  local parts = table_in(text)
  for _, part in ipairs({ parts.code or {}, parts.live or {} }) do
    for name, value in pairs(part) do rule[name] = value end
  end
  return rule
end

-- Until when nobody may start, the state of the rate, and that of the breaker: `!` it is open, `?` jobs that try it have started. In both
-- cases the next jobs that try it may start at `till`.
local function limit_state(text)
  local blocked, mark, till, rate = string.match(text or '', '^([%d.]+)([!?]?)(%d*) ?(.*)$')
  return tonumber(blocked) or 0, rate or '', mark or '', tonumber(till) or 0
end

local function state_text(blocked, rate, mark, till)
  return string.format('%.0f', blocked) .. (mark ~= '' and mark .. string.format('%.0f', till) or '') .. ' ' .. rate
end

-- How many may start by the rate, by a block and by a breaker, and in how many ms the next may if none may now.
local function rate_room(rule, text, now, want)
  local blocked, rate, mark, till = limit_state(text)
  if rule.breaker and mark ~= '' then blocked, want = math.max(blocked, till), math.min(want, rule.breaker.probes) end
  if blocked > now then return 0, blocked - now end
  if not rule.rate then return want, 0 end
  local left, next_in = rate_left(rule.rate, rate, now)
  return math.max(0, math.min(left, want)), next_in
end

-- So many have started. Answers in how many ms the next may, 0 where it may now, and the state then.
local function charge_rate(field, rule, text, now, count)
  local blocked, rate, mark, till = limit_state(text)
  if not rule.rate and mark == '' then return 0, text end
  if rule.rate then rate = rate_charged(rule.rate, rate, now, count) end
  if rule.breaker and mark ~= '' then mark, till = '?', now + rule.breaker.openFor end
  local after = state_text(blocked, rate, mark, till)
  redis.call('HSET', key_limitStates, field, after)
  local left, next_in = rate_room(rule, after, now, 1)
  return left < 1 and math.max(0, next_in) or 0, after
end

-- How many of them may run at once, `math.huge` where nothing says so.
local function most_running(rule)
  return rule.order == 'strict' and 1 or rule.concurrency or math.huge
end

-- When the state of a line says nothing any more. A breaker that is open stays so until jobs have tried it.
local function state_over_at(rule, text, now)
  local blocked, rate, mark = limit_state(text)
  return rule.breaker and mark ~= '' and math.huge or math.max(blocked, rule.rate and rate ~= '' and rate_over_at(rule.rate, rate, now) or 0)
end

-- What is added to the number of a line in `slots`.
local function keeps_slot(rule)
  return rule.order ~= 'strict' and 0 or rule.onDead == 'block' and 0.5 or 0.25
end

-- What a claim must look for, letters in one field of `meta`: `r` a rate, `b` a block, `n` limits by name, `g` groups, `o` limits of one group,
-- `a` aging.
-- Any of them sends claims to `claim-limited`.
local function flag_limits(flags)
  local before = redis.call('HGET', key_meta, 'limited') or ''
  local after = before
  for flag in string.gmatch(flags, '%a') do after = string.find(after, flag, 1, true) and after or after .. flag end
  if after ~= before then redis.call('HSET', key_meta, 'limited', after) end
end
