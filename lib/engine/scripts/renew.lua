--@needs types, clock, prune, count
check_types(key_declaredSets, key_upcoming, key_schedules, key_firings, key_scheduleOrder)
local now = clock()
local own = tonumber(redis.call('ZSCORE', key_declarers, arg_declaration))
if own == nil then return { 'unknown' } end

-- If this declaration has expired itself, Redis or its clock may have stopped or jumped. Then all declarations are renewed.
local is_late = own < now
local all = redis.call('ZRANGE', key_declarers, 0, -1, 'WITHSCORES')
for i = 1, #all, 2 do
  local declaration, ends = all[i], tonumber(all[i + 1])
  -- An unreadable time counts as 0.
  local ttl = count_in(string.match(declaration, ' (%d+) '))
  if is_of_owner(set_of(declaration)) and declaration ~= arg_declaration then
    -- It ends later than possible, so the clock was set back.
    if ends > now + ttl or (is_late and ends < now) then
      redis.call('ZADD', key_declarers, now + ttl, declaration)
    elseif ends < now then
      redis.call('ZREM', key_declarers, declaration)
    end
  end
end
redis.call('ZADD', key_declarers, now + arg_ttlMs, arg_declaration)

local removed, gone, left = prune()
local own_set = set_of(arg_declaration)
if left > 0 or redis.call('HGET', key_declaredSets, own_set) ~= '' then return { 'renewed', removed, gone, 0 } end
redis.call('ZREM', key_declarers, arg_declaration)
redis.call('HDEL', key_declaredSets, own_set)
return { 'renewed', removed, gone, 1 }
