--@needs types, bodies, body-lines, names, slots, lines, limits, json, workers, bell
-- Changes one part of a rule. A change at run time keeps the fields that it does not have, because several changes may be made at once.
-- Jobs that run already count against a new concurrency, so the caller names the active sets.
check_bodies()
check_types(key_meta, key_limits, key_lines, key_lineStates, key_ready, key_resting, key_slots, key_doorbell)
local workers = leased_workers()
if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return 'again' end
local text = redis.call('HGET', key_limits, arg_field)
local defaults = string.sub(arg_field, 1, 2) == 'g:' and limits_in(redis.call('HGET', key_limits, 'g')) or nil
local parts, flags_before, most_before = table_in(text), flags_of(arg_field, limits_in(text)), most_running(limits_in(text, defaults))
local rule = arg_rule ~= '' and cjson.decode(arg_rule) or nil
local before = table_in(text)[arg_part] or {}
if rule and arg_part == 'live' and parts.live then
  for name, value in pairs(rule) do parts.live[name] = value end
  rule = parts.live
end
-- Only a change at run time pauses a group, so a group that is not paused needs no entry.
if rule and arg_part == 'live' then
  rule.paused = rule.paused or nil
  if next(rule) == nil then rule = nil end
end
parts[arg_part] = rule
local stored
if parts.code or parts.live then
  stored = cjson.encode(parts)
elseif string.sub(arg_field, 1, 2) == 'n:' and redis.call('HEXISTS', key_lines, arg_field) == 1 then
  -- The entry is deleted together with its line, which may still have jobs.
  stored = '{}'
end
if stored then redis.call('HSET', key_limits, arg_field, stored) else redis.call('HDEL', key_limits, arg_field) end
local flags = flags_of(arg_field, limits_in(stored))
flag_limits(flags)
-- If no rule needs these letters any more, workers claim ahead again. Many rules are not read: then the letters stay.
local function is_lost(flag) return string.find(flags_before, flag, 1, true) and not string.find(flags, flag, 1, true) end
local limited = (is_lost('r') or is_lost('s')) and redis.call('HGET', key_meta, 'limited')
if limited and redis.call('HLEN', key_limits) <= rule_rulesRead then
  local all, needed = redis.call('HGETALL', key_limits), ''
  for i = 1, #all, 2 do needed = needed .. flags_of(all[i], limits_in(all[i + 1])) end
  local function left(flag) return string.find(needed, flag, 1, true) and flag or '' end
  redis.call('HSET', key_meta, 'limited', (string.gsub(limited, '[rs]', left)))
end
-- Compared as tables: cjson writes equal tables in different orders.
local function is_same(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then return a == b end
  for name, value in pairs(a) do if not is_same(value, b[name]) then return false end end
  for name in pairs(b) do if a[name] == nil then return false end end
  return true
end
if is_same(before, rule or {}) then return 'set' end

-- The name of a running job's line, if the rule applies to it.
local function line_name(id)
  local body = body_of(id)
  if not body then return nil end
  if string.byte(arg_field) == 103 then
    local group = group_of(body)
    local name = group and 'g:' .. group or nil
    return (arg_field == 'g' or arg_field == name) and name or nil
  end
  return 'n:' .. name_of(body) == arg_field and arg_field or nil
end

-- If a change at run time had removed the concurrency of the code, the end of that change brings it back.
local now_applies = limits_in(stored, defaults)
if most_running(now_applies) < math.huge and (most_before == math.huge or rule and most_running(rule) < math.huge) then
  for i = more_first, more_last do
    local ids = redis.call('SMEMBERS', KEYS[i])
    table.sort(ids)
    for _, id in ipairs(ids) do
      local slot = tonumber(redis.call('ZSCORE', key_slots, id) or nil)
      local name = arg_field ~= 'q' and line_name(id)
      if arg_field == 'q' and not slot then
        redis.call('ZADD', key_slots, '0', id)
      elseif name and (slot or 0) < 1 then
        redis.call('ZADD', key_slots, line_text(numbers_of({ name })[name]) .. keeps_slot(now_applies), id)
      end
    end
  end
end
local number = redis.call('HGET', key_lines, arg_field)
if number then look_at_line(number) end
ring()
return 'set'
