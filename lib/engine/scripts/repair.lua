--@needs types, clock, count, bodies, names, named, by-name, hold, line, slots, ending, bell, event, logs, unreadable
-- Repairs the named ids and all workers after manual changes or evictions. Everything is checked again here, and a job that is
-- correct is left as it is. Searching the lines also checks them, with the first id.
check_bodies()
local now = clock()
local day = read_day()
check_types(key_attempts, key_stalls, key_failures, key_results, key_progress, key_logs, key_priorities, key_toCancel)
check_types(key_prioritized, key_grouped, key_slots, key_delayed, key_dead, key_completed, key_doorbell, key_meta)
local names = named_workers()
if not names then return 'again' end
local known = {}
for i = more_first, more_last, 2 do
  check_type(KEYS[i], 'set')
  known[i] = redis.call('HEXISTS', KEYS[i + 1], 'seq') == 1 and redis.call('ZSCORE', key_workers, names[(i - more_first) / 2 + 1])
end

local did = {}
local function tell(act, id, detail)
  did[#did + 1] = act
  did[#did + 1] = told_id(id)
  did[#did + 1] = detail or ''
end

-- The places of an id, the one to keep first. A job that has ended must not run again, a running job must not be claimed again,
-- and of two lines the one nearer to a run counts.
local function places_of(id)
  local found, holder = {}, nil
  if redis.call('ZSCORE', key_completed, id) then found[1] = 'completed' end
  if redis.call('ZSCORE', key_dead, id) then found[#found + 1] = 'dead' end
  for i = more_first, more_last, 2 do
    if redis.call('SISMEMBER', KEYS[i], id) == 1 then
      found[#found + 1] = 'active'
      if not holder or (known[i] and not known[holder]) then holder = i end
    end
  end
  if redis.call('LPOS', key_suspects, id) then found[#found + 1] = 'suspects' end
  if redis.call('LPOS', key_wait, id) then found[#found + 1] = 'wait' end
  if redis.call('ZSCORE', key_prioritized, id) then found[#found + 1] = 'prioritized' end
  if redis.call('ZSCORE', key_grouped, id) then found[#found + 1] = 'grouped' end
  if redis.call('ZSCORE', key_delayed, id) then found[#found + 1] = 'delayed' end
  return found, holder
end

-- Removes an id from every place except one. In a line its second and later entries are removed. It stays in `completed`
-- if any place is kept: that place then is `completed`, which comes first.
local function keep_only(place, id, holder)
  if place == nil then redis.call('ZREM', key_completed, id) end
  if place ~= 'dead' then redis.call('ZREM', key_dead, id) end
  for i = more_first, more_last, 2 do
    if place ~= 'active' or i ~= holder then redis.call('SREM', KEYS[i], id) end
  end
  for line, key in pairs({ suspects = key_suspects, wait = key_wait }) do
    local times = #redis.call('LPOS', key, id, 'COUNT', 0)
    if place == line then times = times - 1 end
    if times > 0 then redis.call('LREM', key, -times, id) end
  end
  if place ~= 'prioritized' then redis.call('ZREM', key_prioritized, id) end
  if place ~= 'grouped' then redis.call('ZREM', key_grouped, id) end
  if place ~= 'delayed' then redis.call('ZREM', key_delayed, id) end
end

local function twice_in(place, id)
  if place ~= 'wait' and place ~= 'suspects' then return false end
  local key = place == 'wait' and key_wait or key_suspects
  return #redis.call('LPOS', key, id, 'COUNT', 2) == 2
end

-- Deletes data of a job that does not fit its place.
local function sweep(place, id)
  local gone = 0
  local slot = place ~= 'active' and redis.call('ZSCORE', key_slots, id)
  if slot and (place == nil or place == 'completed' or ends_with_run(slot)) then
    release_slots({ id }, 'gone')
    tell('swept', id)
  end
  if place ~= 'delayed' then gone = redis.call('HDEL', key_priorities, id) end
  if place ~= 'active' then gone = gone + redis.call('HDEL', key_toCancel, id) end
  if place ~= 'completed' then gone = gone + redis.call('HDEL', key_results, id) end
  if place == nil or place == 'completed' then
    for _, key in ipairs({ key_attempts, key_stalls }) do gone = gone + redis.call('HDEL', key, id) end
  end
  if place == nil then
    gone = gone + drop_log(id, redis.call('HEXISTS', key_logs, id .. '\n' .. rule_logLines) == 1 and rule_logLinesMax or rule_logLines)
    for _, key in ipairs({ key_failures, key_progress }) do gone = gone + redis.call('HDEL', key, id) end
  end
  if gone > 0 then tell('swept', id) end
end

-- Counters that cannot be read start again at 0.
local function reset_numbers(id)
  local gone = 0
  for _, key in ipairs({ key_attempts, key_stalls }) do
    local text = redis.call('HGET', key, id)
    if text and not is_count(text) then gone = gone + 1 + redis.call('HSET', key, id, '0') end
  end
  local text = redis.call('HGET', key_priorities, id)
  if text and not is_priority(text) then gone = gone + redis.call('HDEL', key_priorities, id) end
  if gone > 0 then tell('reset', id) end
end

-- Moves a body from the wrong hash to its own, unless that one has a body for the id.
local function bring_home(id)
  local own = hash_of(id)
  for _, hash in ipairs(body_hashes()) do
    local body = hash ~= own and redis.call('HGET', hash, id)
    if body then
      if not has_body(id) then put_body(id, body) end
      redis.call('HDEL', hash, id)
      tell('swept', id)
    end
  end
end

local buried, lined = {}, {}

-- Removes a job from every place and makes it dead, under a readable id.
local function bury(id, body, record)
  keep_only(nil, id)
  buried[#buried + 1] = finish_corrupt(id, body or '', record, now)
  tell('buried', buried[#buried])
end

-- Puts a job that is in no list into one. The records of the job show whether it had ended.
local function place_again(id, body)
  local failure = redis.call('HGET', key_failures, id)
  local record = redis.call('HGET', key_results, id)
  if record then
    local from = string.find(record, '"cancelled":', 1, true) and rule_cancelledFrom or 0
    redis.call('ZADD', key_completed, string.format('%.0f', from + now + arg_keepMs), id)
    tell('kept-ended', id, 'completed')
    return 'completed'
  elseif failure and string.find(failure, '"reason":"', 1, true) then
    redis.call('ZADD', key_dead, now, id)
    tell('kept-ended', id, 'dead')
    return 'dead'
  elseif body == '' then
    bury(id, body, rule_corruptRecord)
    return 'dead'
  end
  lined[#lined + 1] = id
  tell('lined-up', id)
  return 'wait'
end

for i = ids_first, ids_last do
  local id = id_of_told(ARGV[i])
  bring_home(id)
  local body = body_of(id)
  local places, holder = places_of(id)
  local place = places[1]
  if not is_readable(id) then
    if body or place then bury(id, body, rule_unreadableRecord) end
    drop_bodies(id)
    place = nil
  elseif body and not place then
    place = place_again(id, body)
  elseif not body and (place == 'completed' or place == 'dead') then
    keep_only(place, id)
    put_body(id, '')
    tell('emptied', id, place)
  elseif not body and place then
    bury(id, '', rule_corruptRecord)
    place = 'dead'
  elseif #places > 1 or twice_in(place, id) then
    keep_only(place, id, holder)
    tell('kept-one', id, place)
  end
  sweep(place, id)
  reset_numbers(id)
end

-- A known worker that holds jobs gets its lease back. If it lives, it continues; if not, its jobs are recovered as usual. An
-- unknown worker cannot settle. Its lease is ended, so that `recover` takes its jobs.
local orphans = {}
for i = more_first, more_last, 2 do
  local worker = names[(i - more_first) / 2 + 1]
  local lease = tonumber(redis.call('ZSCORE', key_workers, worker))
  local is_known = redis.call('HEXISTS', KEYS[i + 1], 'seq') == 1
  -- The length that its worker uses. Another process may be configured differently.
  local longest = lease_of(redis.call('HGET', KEYS[i + 1], 'lease'))
  if redis.call('SCARD', KEYS[i]) > 0 and not is_known and (lease == nil or lease > now) then
    lease_until(now, worker)
    redis.call('HSET', KEYS[i + 1], 'doubt', string.format('%.0f %.0f', now, now - arg_beatMs))
    orphans[#orphans + 1] = worker
  elseif (lease == nil and redis.call('SCARD', KEYS[i]) > 0) or (lease and lease > now + longest) then
    lease_until(now + longest, worker)
    tell('leased', worker)
  end
end

-- Jobs are waiting again, or wait for a slot that was freed.
if #did > 0 then ring() end
local events = { count = 0 }
if #lined > 0 then
  to_head(lined)
  say(events, 'added', #lined, table.concat(lined, '\n'), 'name', names_of(lined))
end
if #buried > 0 then
  tally_names_of('dead', buried, day)
  say(events, 'dead', #buried, table.concat(buried, '\n'), 'reason', 'corrupt')
  trim_dead(events, now)
end
write_events(events, now)
return { did, orphans }
