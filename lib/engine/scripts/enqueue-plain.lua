--@needs clock, lane, event
-- Adds all jobs or none, like `enqueue`, with only the keys and arguments that plain new jobs need, because these are most of the
-- cost of a call for one job. If a job is not plain, the call is a repetition, or an id exists, it changes nothing, and `enqueue`
-- is called.
-- To check first would cost as much as the writes. So the script writes, and undoes the writes if the call is not possible.
local ids = { arg_ids }
if arg_jobs == 1 then
  if redis.call('HSETNX', key_bodies, arg_ids, arg_bodies) == 0 then return 0 end
else
  -- One `struct.unpack` for all ids. It also returns where the last one ended.
  local every = string.rep('s', arg_jobs)
  ids = { struct.unpack(every, arg_ids) }
  local bodies = { struct.unpack(every, arg_bodies) }
  -- A body may contain the separator. Then the lengths differ.
  if table.remove(ids) <= #arg_ids or table.remove(bodies) <= #arg_bodies then return 0 end
  local there = redis.call('HMGET', key_bodies, unpack(ids))
  local fields = {}
  for i = 1, arg_jobs do
    if there[i] then return 0 end
    fields[i * 2 - 1] = ids[i]
    fields[i * 2] = bodies[i]
  end
  redis.call('HSET', key_bodies, unpack(fields))
end
local waiting = redis.pcall('RPUSH', key_wait, unpack(ids))
local rung = type(waiting) == 'number' and redis.pcall('ZADD', key_doorbell, '0', 'work')
local is_new = type(rung) == 'number'
local count, last = string.format('%d', arg_jobs), nil
if is_new and arg_maxEvents > 0 then
  last = redis.pcall('HINCRBY', key_meta, 'events', count)
  is_new = type(last) == 'number' and last >= arg_jobs and last <= 9007199254740991
end
local seen = is_new and redis.pcall('SET', key_lane, arg_seq .. '\n', 'PX', arg_rememberMs, 'GET')
if is_new and seen then
  is_new = type(seen) == 'string' and is_newer(tonumber(arg_seq), seen)
end
if not is_new then
  if type(seen) == 'string' then redis.call('SET', key_lane, seen, 'PX', arg_rememberMs) end
  if last == arg_jobs then
    redis.call('HDEL', key_meta, 'events')
  elseif type(last) == 'number' then
    redis.call('HINCRBY', key_meta, 'events', '-' .. count)
  end
  if rung == 1 then redis.call('ZREM', key_doorbell, 'work') end
  if type(waiting) == 'number' then
    for at = #ids, 1, -1 do redis.call('LREM', key_wait, -1, ids[at]) end
  end
  redis.call('HDEL', key_bodies, unpack(ids))
  -- If the number of the last event is unreadable or too large, `enqueue` repairs it.
  for _, answer in ipairs({ waiting, rung, seen or 0, last }) do
    if type(answer) == 'table' and not string.find(answer.err, 'integer', 1, true) and not string.find(answer.err, 'overflow', 1, true) then return answer end
  end
  return 0
end

if last then
  write_entry(last, arg_jobs, { 'added', table.concat(ids, '\n'), 'added.name', arg_names }, clock())
end
return 1
