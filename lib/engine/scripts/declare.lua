--@needs types, clock, prune, write-schedule
check_types(key_declarers, key_upcoming, key_scheduleOrder, key_doorbell, key_declaredSets, key_schedules, key_firings)
local now, now_us = clock()

-- Whether a live process of another owner declares the schedule. If no process does, this owner takes it over.
local function is_taken(id)
  local owner = string.match(redis.call('HGET', key_schedules, id) or '', '^([%w._-]+)\n')
  if not owner or owner == arg_owner then return false end
  for _, declaration in ipairs(redis.call('ZRANGE', key_declarers, now, '+inf', 'BYSCORE')) do
    local set = set_of(declaration)
    local ids = string.sub(set, 1, #owner + 1) == owner .. ':' and redis.call('HGET', key_declaredSets, set) or ''
    if string.find('\n' .. ids .. '\n', '\n' .. id .. '\n', 1, true) then return true end
  end
  return false
end

local own_set = set_of(arg_declaration)
redis.call('ZADD', key_declarers, now + arg_ttlMs, arg_declaration)
redis.call('HSET', key_declaredSets, own_set, arg_ids)

local outcomes = {}
for i = puts_first, puts_last, 5 do
  local id, revision, record = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local keep, next_at = ARGV[i + 3] == '1', tonumber(ARGV[i + 4])
  outcomes[#outcomes + 1] = is_taken(id) and 'taken' or write_schedule(id, revision, record, keep, next_at, now, now_us)
end

-- If no schedules are left, this declaration is not needed either.
local removed, _, left = prune()
if arg_ids ~= '' or left > 0 then return { outcomes, removed, 0 } end
redis.call('ZREM', key_declarers, arg_declaration)
redis.call('HDEL', key_declaredSets, own_set)
return { outcomes, removed, 1 }
