-- One plain new job, added and claimed by the idle worker of the process that adds it: both or neither, so it goes to no line and
-- rings no bell. Whatever is not as plain as it looks changes nothing here; it is added by `enqueue-plain`, and the worker exchanges.
local last_seq = tonumber(redis.call('HGET', key_worker, 'seq'))
if not last_seq or last_seq >= tonumber(arg_claimSeq) then return 0 end
-- What came first goes first.
if redis.call('EXISTS', key_wait, key_suspects, key_prioritized) > 0 then return 0 end
if redis.call('HGET', key_meta, 'paused') then return 0 end

-- To look first costs as much as to write: what turns out not to be possible is taken back.
--@use clock
local stored = redis.pcall('HSETNX', key_bodies, arg_id, arg_body)
local active = stored == 1 and redis.pcall('SADD', key_active, arg_id)
local leased = active == 1 and redis.pcall('ZADD', key_workers, string.format('%d', now + arg_leaseMs), arg_worker)
local is_new = type(leased) == 'number'
local seen = is_new and redis.pcall('SET', key_lane, arg_seq .. '\n', 'PX', arg_rememberMs, 'GET')
if is_new and seen then
  is_new = type(seen) == 'string' and (tonumber(seen) or tonumber(string.match(seen, '^%d+')) or math.huge) < tonumber(arg_seq)
end
if not is_new then
  if type(seen) == 'string' then redis.call('SET', key_lane, seen, 'PX', arg_rememberMs) end
  if leased == 1 then redis.call('ZREM', key_workers, arg_worker) end
  if active == 1 then redis.call('SREM', key_active, arg_id) end
  if stored == 1 then redis.call('HDEL', key_bodies, arg_id) end
  for _, answer in ipairs({ stored, active, leased, seen }) do
    if type(answer) == 'table' then return answer end
  end
  return 0
end

redis.call('HSET', key_worker, 'seq', arg_claimSeq, 'gave', arg_id, 'lost', '', 'lease', arg_leaseMs)
if arg_maxEvents > 0 then
  --@use say
  say(2, { 'added', arg_id, 'added.name', arg_name, 'active', arg_id, 'active.name', arg_name })
end
return now
