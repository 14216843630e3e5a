--@needs types, clock, bodies, by-name, say, unreadable
-- Compares what the store thinks a worker holds with what the worker knows, should they have come to differ. Jobs with ids that
-- cannot be named are dead as corrupt, under ids that can.
local now = clock()
local day = read_day()
check_bodies()
check_types(key_meta, key_attempts, key_stalls, key_failures, key_dead)
local known = {}
local lost, unknown, unreadable = {}, {}, {}
for i = known_first, known_last do
  known[ARGV[i]] = true
  if redis.call('SISMEMBER', key_active, ARGV[i]) == 0 then lost[#lost + 1] = ARGV[i] end
end
for _, id in ipairs(redis.call('SMEMBERS', key_active)) do
  if not known[id] then
    local list = is_readable(id) and unknown or unreadable
    list[#list + 1] = id
  end
end
local bodies, failed, stalls = {}, {}, {}
for i = 1, #unknown do
  bodies[i] = redis.call('HGET', hash_of(unknown[i]), unknown[i]) or ''
  failed[i] = redis.call('HGET', key_attempts, unknown[i])
  stalls[i] = redis.call('HGET', key_stalls, unknown[i])
end

local buried = {}
for i, id in ipairs(unreadable) do
  buried[i] = readable_id(id)
  redis.call('HSET', key_jobs, buried[i], redis.call('HGET', hash_of(id), id) or '')
  redis.call('HDEL', hash_of(id), id)
  redis.call('HDEL', key_attempts, id)
  redis.call('HDEL', key_stalls, id)
  redis.call('SREM', key_active, id)
  redis.call('ZADD', key_dead, now, buried[i])
  redis.call('HSET', key_failures, buried[i], now .. '\n' .. arg_corrupt)
end
if #buried > 0 then
  tally_name('dead', '', #buried, day)
  say(#buried, { 'dead', table.concat(buried, '\n'), 'dead.reason', 'corrupt' }, now)
end
return { lost, buried, unknown, bodies, failed, stalls }
