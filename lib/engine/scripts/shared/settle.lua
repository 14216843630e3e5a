--@needs hold, traces, rank, head, bury, completed, cancelled, settled-names, count, due-score
-- A batch with outcomes of all kinds, some of which may not be accepted. `batch` says what has become of it: how many jobs are
-- `done`, `failed` and `died`, which are `lost` or `cancelled`, how many events it has `said`, and when the first of those that
-- were retried is due. `places` counts the jobs of each place, as the caller does.

-- What did not complete goes on in some way, unless it was cancelled.
local function goes_on(id, batch, traces)
  return is_held(id, batch.lost) and not is_cancelled(id, traces, batch.cancelled)
end

local function forget_failures(ids, traces)
  if #traces == 0 then return end
  redis.call('HDEL', key_attempts, unpack(ids))
  redis.call('HDEL', key_stalls, unpack(ids))
  if traces.has_cancels then redis.call('HDEL', key_cancels, unpack(ids)) end
end

local function settle_completed(ids, batch, traces)
  if are_held(ids) then
    batch.done = redis.call('SREM', key_active, unpack(ids))
    forget(ids, traces)
    return
  end
  local mine = {}
  for _, id in ipairs(ids) do
    if is_held(id, batch.lost) then mine[#mine + 1] = id end
  end
  if #mine > 0 then forget(mine, traces) end
  batch.done = #mine
end

local function settle_kept(batch, places, traces, now)
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
    forget_failures(kept, traces)
    batch.done = batch.done + #kept
    places.completed = places.completed + #kept
    return
  end
  for i, id in ipairs(kept) do
    if is_held(id, batch.lost) then
      redis.call('ZADD', key_completed, until_when[2 * i - 1], id)
      redis.call('HSET', key_results, id, results[2 * i])
      forget_failures({ id }, traces)
      batch.done = batch.done + 1
      places.completed = places.completed + 1
    end
  end
end

-- Where nothing failed, 0 still says that it has started: such a job never expires.
local function count_attempt(id, failed, batch)
  add_to(key_attempts, id, failed)
  batch.failed = batch.failed + tonumber(failed)
end

local function settle_retried(batch, places, traces, now)
  local seen = { own = {}, made = {} }
  for i = retried_first, retried_last, 5 do
    local id, delay, priority = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 4])
    if goes_on(id, batch, traces) then
      count_attempt(id, ARGV[i + 3], batch)
      if ARGV[i + 2] ~= '' then redis.call('HSET', key_failures, id, now .. '\n' .. ARGV[i + 2]) end
      if delay > 0 then
        redis.call('ZADD', key_delayed, due_score(id, now + delay, seen), id)
        batch.soonest = math.min(batch.soonest, now + delay)
        if priority > 0 then redis.call('HSET', key_priorities, id, priority) end
        places.delayed = places.delayed + 1
      elseif priority > 0 then
        redis.call('ZADD', key_prioritized, rank(priority), id)
        places.prioritized = places.prioritized + 1
      else
        redis.call('RPUSH', key_wait, id)
        places.waiting = places.waiting + 1
      end
    end
  end
end

local function settle_dead(batch, traces, now)
  for i = dead_first, dead_last, 3 do
    local id = ARGV[i]
    if goes_on(id, batch, traces) then
      bury(id, ARGV[i + 1], now)
      if ARGV[i + 2] == '1' then count_attempt(id, '1', batch) end
      batch.died = batch.died + 1
    end
  end
end

local function settle_released(batch, places, traces)
  local released = {}
  for i = released_first, released_last, 2 do
    if goes_on(ARGV[i], batch, traces) then
      released[#released + 1] = ARGV[i]
      if ARGV[i + 1] == '1' then add_to(key_attempts, ARGV[i], 0) end
    end
  end
  if #released == 0 then return end
  to_head(released)
  places.waiting = redis.call('LLEN', key_wait)
  places.suspects = redis.call('LLEN', key_suspects)
end

local function say_settled(batch, events)
  local lost, cancelled = batch.lost, batch.cancelled.ids
  if arg_settledEvents <= #lost + #cancelled then return end
  for i = said_first, said_last do events[#events + 1] = ARGV[i] end
  -- The first group says with its list who they are.
  if events[1] == 'completed' and events[2] == '' then events[2] = arg_completed end
  batch.said = arg_settledEvents
  if #lost + #cancelled > 0 then
    local vain = { unpack(lost) }
    for i = 1, #cancelled do vain[#vain + 1] = cancelled[i] end
    events[#events + 1] = 'lost'
    events[#events + 1] = table.concat(vain, '\n')
  end
end

local function settle(completed_ids, places, traces, day, events, now)
  local cancelled = { ids = {}, reasons = {} }
  local batch = { done = 0, failed = 0, died = 0, lost = {}, cancelled = cancelled, said = 0, soonest = math.huge }
  settle_completed(completed_ids, batch, traces)
  settle_kept(batch, places, traces, now)
  if places.completed > 0 then trim_completed(now) end
  settle_retried(batch, places, traces, now)
  settle_dead(batch, traces, now)
  settle_released(batch, places, traces)
  if names_last > names_first then tally_settled_names(completed_ids, batch, day) end
  say_settled(batch, events)
  if #cancelled.ids > 0 then batch.said = batch.said + end_cancelled(cancelled, 1, events, traces, now) end
  if batch.died > 0 then batch.said = batch.said + trim_dead(events, now) end
  return batch
end
