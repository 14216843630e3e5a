--@needs clock, ring, say
-- The first of a transaction, behind which HSET and RPUSH store bodies and ids that never go through Lua. Nothing said here keeps
-- those from being made; where they should not, what they will add is noted down, and `enqueue-end` takes it away.
local seen = redis.pcall('GET', key_lane)
local stored, waiting = redis.pcall('HLEN', key_bodies), redis.pcall('LLEN', key_wait)
local rung = redis.pcall('ZSCORE', key_doorbell, 'work')
local events = arg_maxEvents > 0 and redis.pcall('HGET', key_meta, 'events')

local is_new = true
for _, answer in ipairs({ stored, waiting, seen or 0, rung or 0, events or 0 }) do
  if type(answer) == 'table' then is_new = false end
end
if is_new and seen then is_new = (tonumber(string.match(seen, '^%d+')) or math.huge) < arg_seq end
if not is_new then
  local ids, new = {}, {}
  for id in string.gmatch(arg_ids, '[^\n]+') do ids[#ids + 1] = id end
  local there = redis.pcall('HMGET', key_bodies, unpack(ids))
  for i = 1, #there do
    if not there[i] then new[#new + 1] = ids[i] end
  end
  redis.call('SET', key_undo, arg_jobs .. '\n' .. table.concat(new, '\n'), 'PX', 60000)
  return 0
end

redis.call('SET', key_lane, arg_seq .. '\n', 'PX', arg_rememberMs)
if not rung then
  ring()
end
if arg_maxEvents > 0 then
  say(arg_jobs, { 'added', arg_ids, 'added.name', arg_names }, clock())
end
return 1
