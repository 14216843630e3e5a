-- All or none, as `enqueue`, with the few keys and arguments that plain new jobs need: a call of one job costs by those.
-- Whatever is not as plain as it looks, a repetition or an id that is there already, is left to `enqueue`.
if arg_maxEvents > 0 then redis.call('HGET', key_meta, 'events') end

-- To look first costs as much as to write: what turns out not to be possible is taken back.
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
local ttl = math.max(arg_rememberMs, 1)
local waiting = redis.pcall('RPUSH', key_wait, unpack(ids))
local rung = type(waiting) == 'number' and redis.pcall('ZADD', key_doorbell, 0, 'work')
local is_new = type(rung) == 'number'
local seen = is_new and redis.pcall('SET', key_lane, arg_seq .. '\n', 'PX', ttl, 'GET')
if is_new and seen then
  is_new = type(seen) == 'string' and (tonumber(string.match(seen, '^%d+')) or math.huge) < arg_seq
end
if not is_new then
  if type(seen) == 'string' then redis.call('SET', key_lane, seen, 'PX', ttl) end
  if rung == 1 then redis.call('ZREM', key_doorbell, 'work') end
  if type(waiting) == 'number' then
    for at = #ids, 1, -1 do redis.call('LREM', key_wait, -1, ids[at]) end
  end
  redis.call('HDEL', key_jobs, unpack(ids))
  for _, answer in ipairs({ waiting, rung, seen }) do
    if type(answer) == 'table' then return answer end
  end
  return 0
end

if arg_maxEvents > 0 then
  --@use clock, say
  say(#ids, { 'added', table.concat(ids, '\n'), 'added.name', arg_names })
end
return 1
