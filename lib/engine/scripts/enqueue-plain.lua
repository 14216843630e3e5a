-- All or none, as `enqueue`, with the few keys and arguments that plain new jobs need: a call of one job costs by those.
-- Whatever is not as plain as it looks, a repetition or an id that is there already, is left to `enqueue`.
local seen = redis.call('GET', key_lane)
if seen and tonumber(string.match(seen, '^%d+')) >= arg_seq then return 0 end

-- First everything is read that is written later.
if arg_maxEvents > 0 then redis.call('HGET', key_meta, 'events') end
redis.call('LLEN', key_wait)
local rung = redis.call('ZSCORE', key_doorbell, 'work')

local ids = { ARGV[jobs_first] }
if jobs_last - jobs_first == 1 then
  if redis.call('HSETNX', key_jobs, ids[1], ARGV[jobs_last]) == 0 then return 0 end
else
  for at = jobs_first + 2, jobs_last, 2 do ids[#ids + 1] = ARGV[at] end
  local there = redis.call('HMGET', key_jobs, unpack(ids))
  for i = 1, #ids do
    if there[i] then return 0 end
  end
  redis.call('HSET', key_jobs, unpack(ARGV, jobs_first, jobs_last))
end
redis.call('RPUSH', key_wait, unpack(ids))
if not rung then
  --@use ring
  ring()
end
redis.call('SET', key_lane, arg_seq .. '\n', 'PX', math.max(arg_rememberMs, 1))
if arg_maxEvents > 0 then
  --@use clock, say
  say(#ids, { 'added', table.concat(ids, '\n'), 'added.name', arg_names })
end
return 1
