--@needs types, clock, prune, count
check_types(key_declaredSets, key_upcoming, key_schedules, key_firings, key_scheduleOrder)
local now = clock()
local own = tonumber(redis.call('ZSCORE', key_declarers, arg_declaration))
if own == nil then return { 'unknown' } end

-- Where this one comes too late itself, Redis or its clock may have stood still, or jumped: then all have another chance.
local is_late = own < now
local all = redis.call('ZRANGE', key_declarers, 0, -1, 'WITHSCORES')
for i = 1, #all, 2 do
  local declaration, ends = all[i], tonumber(all[i + 1])
  -- One that says no time is none.
  local ttl = count_in(string.match(declaration, ' (%d+) '))
  if is_of_owner(set_of(declaration)) and declaration ~= arg_declaration then
    -- Further ahead than it can be: the clock was stepped back.
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
