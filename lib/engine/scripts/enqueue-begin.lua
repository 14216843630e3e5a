--@needs clock, lane, bell, event
-- Opens a transaction in which HSET and RPUSH store bodies and ids that never go through Lua. This script cannot stop those
-- commands. If the call is a repetition or a key has the wrong type, it records what they will add, and `enqueue-end` removes that.
local seen = redis.pcall('GET', key_lane)
local stored, waiting = redis.pcall('HLEN', key_bodies), redis.pcall('LLEN', key_wait)
local rung = redis.pcall('ZSCORE', key_doorbell, 'work')
local last = arg_maxEvents > 0 and redis.pcall('HGET', key_meta, 'events')

local is_new = true
for _, answer in ipairs({ stored, waiting, seen or 0, rung or 0, last or 0 }) do
  if type(answer) == 'table' then is_new = false end
end
is_new = is_new and is_newer(arg_seq, seen)
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

remember(arg_seq, '')
if not rung then
  ring()
end
if arg_maxEvents > 0 then
  local events = { count = 0 }
  say(events, 'added', arg_jobs, arg_ids, 'name', arg_names)
  write_events(events, clock())
end
return 1
