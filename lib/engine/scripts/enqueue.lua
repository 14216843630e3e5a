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
redis.call('HMGET', key_meta, 'events')
redis.call('LLEN', key_wait)
redis.call('ZCARD', key_prioritized)
redis.call('HLEN', key_priorities)
redis.call('ZCARD', key_doorbell)
redis.call('ZCARD', key_completed)
for _, key in ipairs({ key_results, key_failures, key_progress, key_logs }) do redis.call('HLEN', key) end
local head = redis.call('ZRANGE', key_delayed, 0, 0, 'WITHSCORES')
local earliest = head[2] and tonumber(head[2]) or math.huge

local duplicates = {}
local added = 0

-- The ids of one list that are new, now with their bodies stored; `stride` values make one job, id and body first. The
-- second answer says where in ARGV each of them stands.
local function fresh(first, last, stride)
  local ids, places = {}, {}
  for at = first, last, stride do
    ids[#ids + 1] = ARGV[at]
    places[#places + 1] = at
  end
  if #ids == 0 then return ids, places end
  local there = redis.call('HMGET', key_jobs, unpack(ids))
  local new, new_places, fields = {}, {}, {}
  for i = 1, #ids do
    if there[i] and not retired(ids[i]) then
      duplicates[#duplicates + 1] = ids[i]
    else
      new[#new + 1] = ids[i]
      new_places[#new_places + 1] = places[i]
      fields[#fields + 1] = ids[i]
      fields[#fields + 1] = ARGV[places[i] + 1]
    end
  end
  if #new > 0 then redis.call('HSET', key_jobs, unpack(fields)) end
  added = added + #new
  return new, new_places
end

-- The same of a list of ids and bodies alone. Mostly all are new: then it is the list of fields as it stands.
local function fresh_pairs(first, last)
  local count = (last - first + 1) / 2
  if count == 0 then return {} end
  local ids = {}
  for i = 1, count do ids[i] = ARGV[first + 2 * i - 2] end
  local there = redis.call('HMGET', key_jobs, unpack(ids))
  for i = 1, count do
    if there[i] then return fresh(first, last, 2) end
  end
  redis.call('HSET', key_jobs, unpack(ARGV, first, last))
  added = added + count
  return ids
end

local plain = fresh_pairs(plain_first, plain_last)
if #plain > 0 then redis.call('RPUSH', key_wait, unpack(plain)) end

local ranked, places = fresh(ranked_first, ranked_last, 3)
for i = 1, #ranked do
  redis.call('ZADD', key_prioritized, rank(tonumber(ARGV[places[i] + 2])), ranked[i])
end

local later
later, places = fresh_pairs(later_first, later_last)
local sooner = false
-- Times stay text as they came: a number would be written anew for every job.
local scores, from_now = {}, {}
for i = 1, #later do
  local nth = places and (places[i] - later_first) / 2 or i - 1
  local due = ARGV[times_first + nth]
  if string.byte(due) == 43 then
    local sum = from_now[due] or string.format('%.0f', now + tonumber(due))
    from_now[due] = sum
    due = sum
  end
  scores[2 * i - 1] = due
  scores[2 * i] = later[i]
  if not sooner and tonumber(due) < earliest then sooner = true end
end
if priorities_first <= priorities_last then
  local is_new = {}
  for i = 1, #later do is_new[later[i]] = true end
  for i = priorities_first, priorities_last, 2 do
    if is_new[ARGV[i]] then redis.call('HSET', key_priorities, ARGV[i], ARGV[i + 1]) end
  end
end

if #scores > 0 then redis.call('ZADD', key_delayed, unpack(scores)) end

if sooner then
  ring_sooner()
elseif #plain > 0 or #ranked > 0 then
  ring()
end

local repeated = table.concat(duplicates, '\n')
redis.call('SET', key_lane, arg_seq .. '\n' .. repeated, 'PX', math.max(arg_rememberMs, 1))

if added > 0 then
  local fields = {}
  for i = said_first, said_last do fields[#fields + 1] = ARGV[i] end
  if #duplicates > 0 then
    fields[#fields + 1] = 'skip'
    fields[#fields + 1] = repeated
  end
  say(arg_jobs, fields)
end
return { 'stored', repeated }
