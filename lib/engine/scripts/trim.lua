--@needs types, clock, bodies, ending, entries, event, bell
-- Removes entries beyond their maximum number or age, a limited part per call. Returns how many were removed; 0 means that
-- nothing is left to do.
check_bodies()
local now = clock()
check_types(key_meta, key_attempts, key_stalls, key_failures, key_results, key_progress, key_logs, key_dead, key_completed, key_doorbell)

-- The number of the first event that is young enough, at most 10,000 after `low`. An entry has at least one event.
local function first_young(low, young)
  local high = low + 10000
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = redis.call('XRANGE', key_events, string.format('%.0f', middle), '+', 'COUNT', 1)[1]
    if not entry or number_of(entry) >= high or written_at(entry) > young then
      high = middle
    else
      low = number_of(entry) + 1
    end
  end
  return low
end

local function trim_events()
  if arg_eventsAge < 0 then return 0 end
  local young = now - arg_eventsAge
  -- If the stream cannot be read, nothing fails.
  local first = redis.pcall('XRANGE', key_events, '-', '+', 'COUNT', 1)[1]
  if not first or written_at(first) > young then return 0 end
  return redis.call('XTRIM', key_events, 'MINID', '=', string.format('%.0f', first_young(number_of(first), young)))
end

local trimmed = trim_completed(now)
if trimmed == 0 then trimmed = trim_cancelled(now) end
local events = { count = 0 }
local dead, has_freed = 0, false
if trimmed == 0 then dead, has_freed = trim_dead(events, now) end
if has_freed then ring() end
write_events(events, now)
return trimmed + dead + trim_events()
