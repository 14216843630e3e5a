--@needs hold, line, traces, ending, event, settled-names
-- Settles a batch with outcomes of any kind, some of which may not be accepted. `batch` collects the result: the numbers `done`,
-- `failed` and `died`, the `lost` and `cancelled` jobs, and when the first retried job is due. `places` has the lengths of the
-- lists.

-- Whether a job that did not complete will run again or die. It does neither if it was cancelled or is not held by this worker.
local function goes_on(id, batch, traces)
  return let_go_or_lost(id, batch.lost) and not is_cancelled(id, traces, batch.cancelled)
end

local function settle_completed(ids, batch, traces)
  local mine = ids
  if are_held(ids) then
    batch.done = let_go(ids)
  else
    mine = {}
    for _, id in ipairs(ids) do if let_go_or_lost(id, batch.lost) then mine[#mine + 1] = id end end
    batch.done = #mine
  end
  if #mine > 0 then finish_completed(mine, traces) end
end

local function settle_kept(batch, places, traces, now)
  local ids, kept, until_when, results, seen = {}, {}, {}, {}, {}
  for i = kept_first, kept_last, 3 do ids[#ids + 1] = ARGV[i] end
  local all = are_held(ids)
  if all then let_go(ids) end
  for i = kept_first, kept_last, 3 do
    local id = ARGV[i]
    -- If one id is kept twice, the first counts.
    if all and seen[id] then
      batch.lost[#batch.lost + 1] = id
    elseif all or let_go_or_lost(id, batch.lost) then
      kept[#kept + 1] = id
      until_when[#until_when + 1], until_when[#until_when + 2] = now + tonumber(ARGV[i + 1]), id
      results[#results + 1], results[#results + 2] = id, now .. '\n' .. ARGV[i + 2]
    end
    seen[id] = true
  end
  if #kept == 0 then return end
  finish_kept(kept, until_when, results, traces)
  batch.done = batch.done + #kept
  places.completed = places.completed + #kept
end

local function count_attempt(id, failed, batch)
  add_attempts(id, failed)
  batch.failed = batch.failed + tonumber(failed)
end

local function settle_retried(batch, places, traces, now)
  local seen = { own = {}, made = {} }
  for i = retried_first, retried_last, 5 do
    local id, delay, priority = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 4])
    if goes_on(id, batch, traces) then
      free_slots({ id }, traces, 'moved')
      if ARGV[i + 3] ~= '' then count_attempt(id, ARGV[i + 3], batch) end
      if ARGV[i + 2] ~= '' then note_failure(id, with_attempts(id, ARGV[i + 2], now), now) end
      if delay > 0 then
        delay_until(now + delay, id, priority, seen)
        batch.soonest = math.min(batch.soonest, now + delay)
        places.delayed = places.delayed + 1
      else
        to_tail_by(priority, id)
        local place = priority > 0 and 'prioritized' or 'waiting'
        places[place] = places[place] + 1
      end
    end
  end
end

local function settle_dead(batch, traces, now)
  for i = dead_first, dead_last, 3 do
    local id = ARGV[i]
    if goes_on(id, batch, traces) then
      free_slots({ id }, traces, 'dead')
      finish_dead(id, with_attempts(id, ARGV[i + 1], now), now)
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
      if ARGV[i + 1] == '1' then add_attempts(ARGV[i], 0) end
    end
  end
  if #released == 0 then return end
  free_slots(released, traces, 'moved')
  to_head(released)
  mark_returned(released)
  count_lists(places)
end

local function say_settled(batch, events)
  local lost, cancelled = batch.lost, batch.cancelled.ids
  if arg_settledEvents <= #lost + #cancelled then return end
  for i = eventFields_first, eventFields_last do events[#events + 1] = ARGV[i] end
  -- The ids of the first group are those of the argument `completed`.
  if events[1] == 'completed' and events[2] == '' then events[2] = arg_completed end
  events.count = events.count + arg_settledEvents
  if #lost + #cancelled > 0 then
    local vain = { unpack(lost) }
    for i = 1, #cancelled do vain[#vain + 1] = cancelled[i] end
    say(events, 'lost', 0, table.concat(vain, '\n'))
  end
end

local function settle(completed_ids, places, traces, day, events, now)
  local cancelled = { ids = {}, reasons = {}, keeps = {} }
  local batch = { done = 0, failed = 0, died = 0, lost = {}, cancelled = cancelled, soonest = math.huge }
  settle_completed(completed_ids, batch, traces)
  settle_kept(batch, places, traces, now)
  if places.completed > 0 then trim_completed(now) end
  settle_retried(batch, places, traces, now)
  settle_dead(batch, traces, now)
  settle_released(batch, places, traces)
  if names_last > names_first then tally_settled_names(completed_ids, batch, day) end
  say_settled(batch, events)
  finish_cancelled(cancelled, 1, events, traces, now)
  if batch.died > 0 and select(2, trim_dead(events, now)) then traces.has_freed = true end
  return batch
end
