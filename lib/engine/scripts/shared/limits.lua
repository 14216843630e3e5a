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

-- Until when nobody may start, and the state of the rate.
local function limit_state(text)
  local blocked, rate = string.match(text or '', '^([%d.]+) ?(.*)$')
  return tonumber(blocked) or 0, rate or ''
end

local function state_text(blocked, rate)
  return string.format('%.0f ', blocked) .. rate
end

-- How many may start by the rate and by a block, and in how many ms the next may if none may now.
local function rate_room(rule, text, now, want)
  local blocked, rate = limit_state(text)
  if blocked > now then return 0, blocked - now end
  if not rule.rate then return want, 0 end
  local left, next_in = rate_left(rule.rate, rate, now)
  return math.max(0, math.min(left, want)), next_in
end

-- So many have started. Answers in how many ms the next may, 0 where it may now.
local function charge_rate(field, rule, text, now, count)
  local blocked, rate = limit_state(text)
  rate = rate_charged(rule.rate, rate, now, count)
  redis.call('HSET', key_limitStates, field, state_text(blocked, rate))
  local left, next_in = rate_left(rule.rate, rate, now)
  return left < 1 and math.max(0, next_in) or 0
end

-- How many of them may run at once, `math.huge` where nothing says so.
local function most_running(rule)
  if rule.order == 'strict' then return 1 end
  return rule.concurrency or math.huge
end

-- When the state of a line says nothing any more.
local function state_over_at(rule, text, now)
  local blocked, rate = limit_state(text)
  return math.max(blocked, rule.rate and rate ~= '' and rate_over_at(rule.rate, rate, now) or 0)
end

-- What is added to the number of a line in `slots`.
local function keeps_slot(rule)
  if rule.order ~= 'strict' then return 0 end
  return rule.onDead == 'block' and 0.5 or 0.25
end

-- What a claim must look for, letters in one field of `meta`: `r` a rate, `b` a block, `n` limits by name, `g` groups, `o` limits of one group,
-- `a` aging.
-- Any of them sends claims to `claim-limited`.
local function flag_limits(flags)
  local before = redis.call('HGET', key_meta, 'limited') or ''
  local after = before
  for flag in string.gmatch(flags, '%a') do
    if not string.find(after, flag, 1, true) then after = after .. flag end
  end
  if after ~= before then redis.call('HSET', key_meta, 'limited', after) end
end
