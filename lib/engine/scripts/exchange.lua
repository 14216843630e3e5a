--@needs clock, count, bodies, traces, by-name, gate, hold, line, settle, ending, claimed, bell, event
-- Settles, promotes and claims. First it reads everything that it may write later, which also checks the types. A repetition of
-- the last exchange gives the same answer and changes nothing, because the first answer may have been lost. A pipelined exchange
-- has its own numbers, so that each of two calls in flight can be repeated independently.
local now = clock()
local day = read_day()
local traces = read_traces()
local suffix = arg_pipelined == 1 and '2' or ''
local record = redis.call('HMGET', key_worker, 'seq' .. suffix, 'gave' .. suffix, 'lost' .. suffix, 'seq')
local seq = tonumber(arg_seq)
-- An unreadable number counts as the number before this call. A repeated call then settles once more, which has no effect.
local last_seq = record[1] and count_in(record[1], seq - 1) or nil
if last_seq == nil and seq > 1 then return { 'unknown-worker', now } end
if arg_pipelined == 1 and not record[4] then return { 'unknown-worker', now } end
if last_seq and seq < last_seq then return { 'stale', now } end

-- Limited, so that one call does not take long and fits what Lua can unpack.
local want, opens_in = open_gate(math.min(arg_want, rule_claimMax), now)
local held_now = held()
local leases = redis.call('ZRANGE', key_workers, '0', '1', 'WITHSCORES')
local places = { waiting = 0, delayed = 0, suspects = 0, prioritized = 0, completed = 0 }
local scheduled
-- If the queue keeps up, none of these keys exists.
local there = redis.call('EXISTS', key_wait, key_delayed, key_upcoming, key_doorbell, key_suspects, key_prioritized,
  key_completed, key_results, key_dead)
-- Keys that exist most often are read first. When all that exist have been read, the rest need no command. Each read also checks the
-- type of its key.
local function counted(size)
  if size > 0 then there = there - 1 end
  return size
end
if there > 0 then places.waiting = counted(redis.call('LLEN', key_wait)) end
if there > 0 then counted(redis.call('ZCARD', key_doorbell)) end
if there > 0 then places.prioritized = counted(redis.call('ZCARD', key_prioritized)) end
if there > 0 then places.delayed = counted(redis.call('ZCARD', key_delayed)) end
if there > 0 then
  scheduled = redis.call('ZRANGE', key_upcoming, 0, 0, 'WITHSCORES')[2]
  counted(scheduled and 1 or 0)
end
if there > 0 then places.completed = counted(redis.call('ZCARD', key_completed)) end
if there > 0 then counted(redis.call('HLEN', key_results)) end
if there > 0 then places.suspects = counted(redis.call('LLEN', key_suspects)) end
if there > 0 then counted(redis.call('ZCARD', key_dead)) end

-- Whether any job may have failed or stalled before.
local has_traces = #traces > 0

local function split(text)
  local parts = {}
  for part in string.gmatch(text or '', '[^\n]+') do parts[#parts + 1] = part end
  return parts
end

-- `count`: how many jobs the answer gave. The answer to a repetition counts the remaining jobs in the same way, but does not know
-- whether the first answer was cut.
local function answer(lost, claimed_ids, bodies, count, is_cut, failed, stalled)
  local due_in, lease_of_another = -1, -1
  if places.delayed > 0 then due_in = next_due(now) end
  local lease = leases[leases[1] == arg_worker and 4 or 2]
  if lease then lease_of_another = math.max(0, math.ceil(tonumber(lease) - now)) end
  -- `arg_want` is below 0 if shared limits let no job start. The answer then tells whether any job waits.
  local is_empty = count < want or arg_want < 0 and places.waiting + places.prioritized == 0
  return { 'exchanged', now, is_cut and rule_supplyCut or opens_in == rule_supplyMore and is_empty and rule_supplyEmpty or opens_in,
    due_in, lease_of_another, scheduled and math.max(0, math.ceil(tonumber(scheduled) - now)) or -1, held_now, lost ~= '' and lost or 0,
    claimed_ids, bodies_in(bodies), failed, stalled }
end

if last_seq == seq then
  local given, ids, bodies, seen = split(record[2]), {}, {}, {}
  for _, id in ipairs(given) do
    -- Parts of an id with a line break may look like other ids.
    local body = not seen[id] and redis.call('SISMEMBER', key_active, id) == 1 and body_of(id)
    seen[id] = true
    if body then
      ids[#ids + 1], bodies[#bodies + 1] = id, body
    end
  end
  return answer(record[3] or '', table.concat(ids, '\n'), bodies, #given, false, counts_of(ids))
end

local held_before, events, lost = held_now, { count = 0 }, ''
local soonest = math.huge
local completed_ids = split(arg_completed)
check_bodies_of(completed_ids)

-- ------------------------------------------------------------------------------------------------------------ settle
-- In most calls all jobs have completed, have one name, and are held by this worker.
local is_plain = kept_last < kept_first and retried_last < retried_first and dead_last < dead_first
  and released_last < released_first and places.completed == 0 and names_last - names_first <= 3 and day.names < rule_namesPerDay
-- A job that is named twice counts once.
local done = 0
if is_plain and #completed_ids > 0 then
  if #completed_ids == 1 or are_held(completed_ids) then done = let_go(completed_ids) end
  is_plain = done > 0
end

if is_plain then
  if done > 0 then
    held_now = held_now - done
    finish_completed(completed_ids, traces)
    tally_name('processed', ARGV[names_first], done, day)
    if arg_settledEvents > 0 then
      for i = eventFields_first, eventFields_last do events[#events + 1] = ARGV[i] end
      events[2], events.count = arg_completed, arg_settledEvents
    end
  end
else
  has_traces = true
  local batch = settle(completed_ids, places, traces, day, events, now)
  -- After an empty line come the jobs that ended as cancelled, whatever their outcome.
  lost = table.concat(batch.lost, '\n') .. (#batch.cancelled.ids > 0 and '\n\n' or '') .. table.concat(batch.cancelled.ids, '\n')
  held_now, soonest = held(), batch.soonest
end

-- ----------------------------------------------------------------------------------------------------------- promote
if places.delayed > 0 then
  if promote_due(rule_promoteMax, now) > 0 then
    places.delayed = redis.call('ZCARD', key_delayed)
    places.waiting = redis.call('LLEN', key_wait)
    places.prioritized = redis.call('ZCARD', key_prioritized)
  end
end

-- ------------------------------------------------------------------------------------------------------------- claim
local ids, from, bodies = {}, nil, {}
-- A suspect that this worker may not take does not count. Otherwise a ring for it would wake this worker again and again.
local left = places.waiting + places.prioritized + (arg_maySuspect == 1 and places.suspects or 0)
if want > 0 and left > 0 then
  ids, from = take(want, arg_maySuspect == 1, places)
  left = left - #ids
end

local claimed_ids, refusal, is_cut, failed, stalled = '', nil, false, {}, {}
if #ids > 0 then
  local name, missing
  bodies, name, missing = bodies_and_name(ids, arg_maxBytes)
  -- Only now is it known which hashes have the bodies. If one cannot be read, the settlements stay, and the worker gets an error.
  if bodies.err then refusal, bodies = bodies, {} end
  if #bodies < #ids then
    is_cut = true
    left = left + #ids - #bodies
    put_back(ids, #bodies + 1, from)
  end
  if missing then
    -- Somebody removed bodies by hand. Such a job must not stop its batch.
    local whole, whole_bodies, broken = {}, {}, {}
    for i = 1, #ids do
      if bodies[i] then
        whole[#whole + 1], whole_bodies[#whole + 1] = ids[i], bodies[i]
      else
        broken[#broken + 1] = finish_corrupt(ids[i], '', rule_corruptRecord, now)
      end
    end
    tally_name('dead', '', #broken, day)
    say(events, 'dead', #broken, table.concat(broken, '\n'), 'reason', 'corrupt')
    ids, bodies, name = whole, whole_bodies, nil
  end
  if #ids > 0 then
    held_now = held_now + hold(ids)
    claimed_ids = table.concat(ids, '\n')
    if has_traces then failed, stalled = counts_of(ids) end
    if arg_maxEvents > 0 then say_active(events, ids, claimed_ids, name, bodies, failed) end
  end
end

-- The ring that woke this worker may have been the only one. If more work can start, the next idle worker is woken. A worker that
-- no longer claims leaves the slots that it has freed to others. Below 0, shared limits let no worker start these jobs.
if left > 0 and opens_in == rule_supplyMore and arg_want >= 0 or traces.has_freed and arg_want < 1 then ring() end
if soonest < math.huge and opens_in ~= rule_supplyPaused and next_due(now) >= soonest - now then ring_sooner() end

if #ids > 0 or held_before > 0 then
  if held_now > 0 then lease_until(now + arg_leaseMs, arg_worker) elseif #leases > 0 then end_lease(arg_worker) end
end
redis.call('HSET', key_worker, 'seq' .. suffix, arg_seq, 'gave' .. suffix, claimed_ids, 'lost' .. suffix, lost, 'lease', arg_leaseMs)
redis.call('PEXPIRE', key_worker, rule_workerRecordMs)

write_events(events, now)
return refusal or answer(lost, claimed_ids, bodies, #ids, is_cut, failed, stalled)
