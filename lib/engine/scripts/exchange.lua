-- Settle, promote, claim. First everything is read that may be written later, which also checks every type; a repetition
-- of the last exchange answers the same and changes nothing, since its reply may have been lost.
local record = redis.call('HMGET', key_worker, 'seq', 'gave', 'lost')
local last_seq = tonumber(record[1])
if last_seq == nil and arg_seq > 1 then return { 'unknown-worker', now } end
if last_seq and arg_seq < last_seq then return { 'stale', now } end

local paused = redis.call('HGET', key_meta, 'paused')
local waiting = redis.call('LLEN', key_wait)
local suspects = redis.call('LLEN', key_suspects)
local prioritized = redis.call('ZCARD', key_prioritized)
local delayed = redis.call('ZCARD', key_delayed)
local held = redis.call('SCARD', key_active)
local leases = redis.call('ZCARD', key_workers)
local completed = redis.call('ZCARD', key_completed)
redis.call('ZCARD', key_dead)
redis.call('HLEN', key_results)
local scheduled = redis.call('ZRANGE', key_schedules, 0, 0, 'WITHSCORES')[2]
redis.call('ZCARD', key_doorbell)

local function lease_of_another()
  local first = redis.call('ZRANGE', key_workers, 0, 1, 'WITHSCORES')
  local at = first[1] == arg_worker and 4 or 2
  return first[at] and math.max(0, math.ceil(tonumber(first[at]) - now)) or -1
end

local function answer(lost, ids, bodies)
  local failed, stalled = {}, {}
  if #ids > 0 then
    if redis.call('HLEN', key_attempts) > 0 then failed = redis.call('HMGET', key_attempts, unpack(ids)) end
    if redis.call('HLEN', key_stalls) > 0 then stalled = redis.call('HMGET', key_stalls, unpack(ids)) end
  end
  return { 'exchanged', now, paused and 1 or 0, delayed > 0 and next_due() or -1, lease_of_another(),
    scheduled and math.max(0, math.ceil(tonumber(scheduled) - now)) or -1, redis.call('SCARD', key_active), lost, ids, bodies, failed, stalled }
end

local function split(text)
  local parts = {}
  for part in string.gmatch(text or '', '[^\n]+') do parts[#parts + 1] = part end
  return parts
end

if last_seq == arg_seq then
  local ids, bodies = {}, {}
  for _, id in ipairs(split(record[2])) do
    local body = redis.call('SISMEMBER', key_active, id) == 1 and redis.call('HGET', key_jobs, id)
    if body then
      ids[#ids + 1] = id
      bodies[#bodies + 1] = body
    end
  end
  return answer(split(record[3]), ids, bodies)
end

local events, said = {}, 0
local lost = {}

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

-- ------------------------------------------------------------------------------------------------------------ settle
local done = 0
if completed_last >= completed_first then
  local count = completed_last - completed_first + 1
  local member = redis.call('SMISMEMBER', key_active, unpack(ARGV, completed_first, completed_last))
  local all = true
  for i = 1, count do
    if member[i] == 0 then all = false break end
  end
  if all then
    -- Not `count`: what is said twice of one job counts once.
    done = redis.call('SREM', key_active, unpack(ARGV, completed_first, completed_last))
    forget(unpack(ARGV, completed_first, completed_last))
  else
    local mine = {}
    for i = completed_first, completed_last do
      if is_held(ARGV[i]) then mine[#mine + 1] = ARGV[i] end
    end
    if #mine > 0 then forget(unpack(mine)) end
    done = #mine
  end
end

for i = kept_first, kept_last, 3 do
  local id = ARGV[i]
  if is_held(id) then
    redis.call('ZADD', key_completed, now + tonumber(ARGV[i + 1]), id)
    redis.call('HSET', key_results, id, now .. '\n' .. ARGV[i + 2])
    redis.call('HDEL', key_attempts, id)
    redis.call('HDEL', key_stalls, id)
    if has_cancels then redis.call('HDEL', key_cancels, id) end
    done = done + 1
    completed = completed + 1
  end
end
if completed > 0 then trim_completed() end

local failed = 0
local soonest = math.huge
for i = retried_first, retried_last, 5 do
  local id, delay, priority = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 4])
  if goes_on(id) then
    if ARGV[i + 3] == '1' then
      redis.call('HINCRBY', key_attempts, id, 1)
      failed = failed + 1
    end
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
for i = released_first, released_last do
  if goes_on(ARGV[i]) then released[#released + 1] = ARGV[i] end
end
if #released > 0 then
  to_head(released)
  waiting = redis.call('LLEN', key_wait)
  suspects = redis.call('LLEN', key_suspects)
end

if names_last > names_first then tally_settled_names(done, failed, died, lost, cancelled) end

if arg_settledEvents > #lost + #cancelled then
  for i = said_first, said_last do events[#events + 1] = ARGV[i] end
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

-- ----------------------------------------------------------------------------------------------------------- promote
if delayed > 0 and promote_due(arg_promote) > 0 then
  delayed = redis.call('ZCARD', key_delayed)
  waiting = redis.call('LLEN', key_wait)
  prioritized = redis.call('ZCARD', key_prioritized)
end

-- ------------------------------------------------------------------------------------------------------------- claim
local ids, bodies = {}, {}
-- Bounded, so that one call never takes long and fits what Lua can unpack.
local want = math.min(arg_want, 1000)
-- Suspects it may not take do not count: a bell for them would only wake this worker again, and again.
local left = waiting + prioritized + (arg_maySuspect == 1 and suspects or 0)
if want > 0 and left > 0 and not paused then
  if suspects > 0 and arg_maySuspect == 1 then ids = redis.call('LPOP', key_suspects, 1) end
  if waiting > 0 and #ids < want then
    local taken = redis.call('LPOP', key_wait, want - #ids)
    if #ids == 0 then
      ids = taken
    else
      for i = 1, #taken do ids[#ids + 1] = taken[i] end
    end
  end
  if prioritized > 0 and #ids < want then
    local taken = redis.call('ZPOPMIN', key_prioritized, want - #ids)
    for i = 1, #taken, 2 do ids[#ids + 1] = taken[i] end
  end
  left = left - #ids
end

if #ids > 0 then
  bodies = redis.call('HMGET', key_jobs, unpack(ids))
  local missing = false
  local same = bodies[1] and name_of(bodies[1]) .. '\n' or '\n'
  for i = 1, #ids do
    if not bodies[i] then
      missing = true
    elseif same and string.find(bodies[i], same, 1, true) ~= 1 then
      same = nil
    end
  end
  if missing then
    -- Somebody removed bodies by hand. A job without one can never run: it is dead, and does not stop its batch.
    local whole, whole_bodies, broken = {}, {}, {}
    for i = 1, #ids do
      if bodies[i] then
        whole[#whole + 1] = ids[i]
        whole_bodies[#whole] = bodies[i]
      else
        broken[#broken + 1] = ids[i]
        redis.call('HSET', key_jobs, ids[i], '')
        bury(ids[i], arg_corrupt)
      end
    end
    tally_name('dead', '', #broken)
    events[#events + 1] = 'dead'
    events[#events + 1] = table.concat(broken, '\n')
    events[#events + 1] = 'dead.reason'
    events[#events + 1] = 'corrupt'
    said = said + #broken
    ids, bodies, same = whole, whole_bodies, nil
  end
  if #ids > 0 then
    redis.call('SADD', key_active, unpack(ids))
    if arg_maxEvents > 0 then
      events[#events + 1] = 'active'
      events[#events + 1] = table.concat(ids, '\n')
      events[#events + 1] = 'active.name'
      if same then
        events[#events + 1] = string.sub(same, 1, -2)
      else
        local names = {}
        for i = 1, #ids do names[i] = name_of(bodies[i]) end
        events[#events + 1] = table.concat(names, '\n')
      end
      if redis.call('HLEN', key_attempts) > 0 then
        local before = redis.call('HMGET', key_attempts, unpack(ids))
        for i = 1, #ids do before[i] = (tonumber(before[i]) or 0) + 1 end
        events[#events + 1] = 'active.attempt'
        events[#events + 1] = table.concat(before, '\n')
      end
      said = said + #ids
    end
  end
end

-- Whoever claimed may have been woken by the only bell: if work remains, the next idle worker is woken.
if left > 0 and not paused then ring() end
if soonest < math.huge and not paused and next_due() >= soonest - now then ring_sooner() end

if #ids > 0 or held > 0 then
  if #ids > 0 or redis.call('SCARD', key_active) > 0 then
    redis.call('ZADD', key_workers, now + arg_leaseMs, arg_worker)
  elseif leases > 0 then
    redis.call('ZREM', key_workers, arg_worker)
  end
end
redis.call('HSET', key_worker, 'seq', arg_seq, 'gave', table.concat(ids, '\n'), 'lost', table.concat(lost, '\n'),
  'lease', arg_leaseMs)
redis.call('PEXPIRE', key_worker, arg_recordMs)

say(said, events)
return answer(lost, ids, bodies)
