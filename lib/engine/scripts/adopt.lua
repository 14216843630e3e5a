--@needs bodies
-- Compares what the store thinks a worker holds with what the worker knows, should they have come to differ.
local known = {}
local lost, unknown = {}, {}
for i = known_first, known_last do
  known[ARGV[i]] = true
  if redis.call('SISMEMBER', key_active, ARGV[i]) == 0 then lost[#lost + 1] = ARGV[i] end
end
for _, id in ipairs(redis.call('SMEMBERS', key_active)) do
  if not known[id] then unknown[#unknown + 1] = id end
end
local bodies, failed, stalls = {}, {}, {}
for i = 1, #unknown do
  bodies[i] = redis.call('HGET', hash_of(unknown[i]), unknown[i]) or ''
  failed[i] = redis.call('HGET', key_attempts, unknown[i])
  stalls[i] = redis.call('HGET', key_stalls, unknown[i])
end
return { lost, unknown, bodies, failed, stalls }
