-- A batch with outcomes of all kinds, some of which may not be accepted.
--@use steps, names, tally, rank, head, bury, forget, completed, cancelled, settled-names

-- Fence: only what this worker holds may be settled by it.
local function is_held(id)
  if redis.call('SREM', key_active, id) == 1 then return true end
  lost[#lost + 1] = id
  return false
end

-- What did not complete goes on in some way, unless it was cancelled.
local function goes_on(id)
  return is_held(id) and not is_cancelled(id)
end

local done = 0
if are_held(completed_ids) then
  done = redis.call('SREM', key_active, unpack(completed_ids))
  forget(unpack(completed_ids))
else
  local mine = {}
  for _, id in ipairs(completed_ids) do
    if is_held(id) then mine[#mine + 1] = id end
  end
  if #mine > 0 then forget(unpack(mine)) end
  done = #mine
end

local function forget_failures(...)
  if #trace_keys == 0 then return end
  redis.call('HDEL', key_attempts, ...)
  redis.call('HDEL', key_stalls, ...)
  if has_cancels then redis.call('HDEL', key_cancels, ...) end
end

-- Of what is kept under one id twice, the first counts.
local kept, until_when, results, seen, is_repeated = {}, {}, {}, {}, false
for i = kept_first, kept_last, 3 do
  if seen[ARGV[i]] then is_repeated = true end
  seen[ARGV[i]] = true
  kept[#kept + 1] = ARGV[i]
  until_when[#until_when + 1] = now + tonumber(ARGV[i + 1])
  until_when[#until_when + 1] = ARGV[i]
  results[#results + 1] = ARGV[i]
  results[#results + 1] = now .. '\n' .. ARGV[i + 2]
end
if not is_repeated and are_held(kept) then
  redis.call('SREM', key_active, unpack(kept))
  redis.call('ZADD', key_completed, unpack(until_when))
  redis.call('HSET', key_results, unpack(results))
  forget_failures(unpack(kept))
  done = done + #kept
  completed = completed + #kept
else
  for i, id in ipairs(kept) do
    if is_held(id) then
      redis.call('ZADD', key_completed, until_when[2 * i - 1], id)
      redis.call('HSET', key_results, id, results[2 * i])
      forget_failures(id)
      done = done + 1
      completed = completed + 1
    end
  end
end
if completed > 0 then trim_completed() end

local failed = 0
for i = retried_first, retried_last, 5 do
  local id, delay, priority = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 4])
  if goes_on(id) then
    -- Where nothing failed, 0 still says that it has started: such a job never expires.
    redis.call('HINCRBY', key_attempts, id, ARGV[i + 3])
    failed = failed + tonumber(ARGV[i + 3])
    if ARGV[i + 2] ~= '' then redis.call('HSET', key_failures, id, now .. '\n' .. ARGV[i + 2]) end
    if delay > 0 then
      redis.call('ZADD', key_delayed, now + delay, id)
      soonest = math.min(soonest, now + delay)
      if priority > 0 then redis.call('HSET', key_priorities, id, priority) end
      delayed = delayed + 1
    elseif priority > 0 then
      redis.call('ZADD', key_prioritized, rank(priority), id)
      prioritized = prioritized + 1
    else
      redis.call('RPUSH', key_wait, id)
      waiting = waiting + 1
    end
  end
end

local died = 0
for i = dead_first, dead_last, 3 do
  local id = ARGV[i]
  if goes_on(id) then
    bury(id, ARGV[i + 1])
    if ARGV[i + 2] == '1' then
      redis.call('HINCRBY', key_attempts, id, 1)
      failed = failed + 1
    end
    died = died + 1
  end
end

local released = {}
for i = released_first, released_last, 2 do
  if goes_on(ARGV[i]) then
    released[#released + 1] = ARGV[i]
    if ARGV[i + 1] == '1' then redis.call('HINCRBY', key_attempts, ARGV[i], 0) end
  end
end
if #released > 0 then
  to_head(released)
  waiting = redis.call('LLEN', key_wait)
  suspects = redis.call('LLEN', key_suspects)
end

if names_last > names_first then tally_settled_names(done, failed, died, lost, cancelled) end

if arg_settledEvents > #lost + #cancelled then
  for i = said_first, said_last do events[#events + 1] = ARGV[i] end
  -- The first group says with its list who they are.
  if events[1] == 'completed' and events[2] == '' then events[2] = arg_completed end
  said = arg_settledEvents
  if #lost + #cancelled > 0 then
    local vain = { unpack(lost) }
    for i = 1, #cancelled do vain[#vain + 1] = cancelled[i] end
    events[#events + 1] = 'lost'
    events[#events + 1] = table.concat(vain, '\n')
  end
end
if #cancelled > 0 then said = said + end_cancelled(cancelled, cancel_reasons, 1, events) end
if died > 0 then said = said + trim_dead(events) end
