-- All or none. A job whose id is already in the queue, in whatever state, is left as it is and named in the answer.
local seen = redis.call('GET', key_lane)
if seen then
  local seq, duplicates = string.match(seen, '^(%d+)\n(.*)$')
  seq = tonumber(seq)
  if seq > arg_seq then return { 'stale' } end
  if seq == arg_seq then
    -- Changes nothing, but is a write: WAIT on a new connection speaks only of what that connection has written.
    redis.call('SET', key_lane, seen, 'KEEPTTL')
    return { 'stored', duplicates }
  end
end
local has_plain, has_ranked, has_later =
  plain_first <= plain_last, ranked_first <= ranked_last, later_first <= later_last
local duplicates = {}
local added = 0

-- First everything is read that may be written, and nothing else: a call costs by what it adds.
if arg_maxEvents > 0 or has_ranked then redis.call('HMGET', key_meta, 'events') end
if has_plain then redis.call('LLEN', key_wait) end
if has_ranked then redis.call('ZCARD', key_prioritized) end
if priorities_first <= priorities_last then redis.call('HLEN', key_priorities) end
local rung = redis.call('ZSCORE', key_doorbell, 'work')
local earliest = math.huge
if has_later then
  local head = redis.call('ZRANGE', key_delayed, 0, 0, 'WITHSCORES')
  if head[2] then earliest = tonumber(head[2]) end
end

-- Mostly there is nothing but new jobs without an order or a time of their own.
local is_plain = has_plain and not has_ranked and not has_later
local ids = {}
if is_plain then
  for at = plain_first, plain_last, 2 do ids[#ids + 1] = ARGV[at] end
  local there = redis.call('HMGET', key_jobs, unpack(ids))
  for i = 1, #ids do
    if there[i] then is_plain = false break end
  end
end
if is_plain then
  redis.call('HSET', key_jobs, unpack(ARGV, plain_first, plain_last))
  redis.call('RPUSH', key_wait, unpack(ids))
  added = #ids
  --@use ring
  if not rung then ring() end
else
  --@use enqueue-mixed
end

local repeated = table.concat(duplicates, '\n')
redis.call('SET', key_lane, arg_seq .. '\n' .. repeated, 'PX', math.max(arg_rememberMs, 1))

if added > 0 then
  --@use say
  local fields = {}
  for i = said_first, said_last do fields[#fields + 1] = ARGV[i] end
  if #duplicates > 0 then
    fields[#fields + 1] = 'skip'
    fields[#fields + 1] = repeated
  end
  say(arg_jobs, fields)
end
return { 'stored', repeated }
