--@needs types, clock, bodies, body-lines, names, traces, line, ending, bell, limits, schedule-state, next-time, next-schedule, event
-- Adds the jobs of occurrences and sets the next times. A second process finds another revision and does nothing, so each
-- occurrence adds one job, even if many processes see that it is due. All types are checked before the first write.
check_bodies()
local now = clock()
local traces = read_traces()
check_types(key_meta, key_wait, key_grouped, key_suspects, key_prioritized, key_delayed, key_dead, key_completed)
check_types(key_upcoming, key_doorbell, key_results, key_firings)

local added, delayed, removed = {}, {}, {}
local added_names, delayed_names, delays, removed_names = {}, {}, {}, {}
local wakes, has_groups = false, false
local earliest = first_due()

-- Waiting, delayed or active.
local function is_open(id)
  return has_body(id) and not redis.call('ZSCORE', key_dead, id)
    and not redis.call('ZSCORE', key_completed, id)
end

-- Removes a waiting or delayed job. A running job is cancelled; the next heartbeat tells its worker. The last job
-- of a schedule is near the end of its line, so the search starts there.
local function replace(id)
  local body = body_of(id)
  local name = name_of(body)
  if not leave(id, -1) then return mark_cancelled(id, 'replaced', kept_when_cancelled(body, arg_keep)) end
  finish_completed({ id }, traces)
  -- `traces` does not show what this call has stored.
  change_priority(id, 0)
  removed[#removed + 1] = id
  removed_names[#removed_names + 1] = name
end

local function make(id, body, due, priority)
  -- A schedule of this name has added the job before. One occurrence is one job.
  if has_body(id) and not retire(id, now) then return end
  put_body(id, body)
  has_groups = has_groups or group_of(body) ~= nil
  if due > now then
    delay_until(due, id, priority, { own = {}, made = {} })
    if due < earliest then earliest, wakes = due, true end
    delayed[#delayed + 1] = id
    delayed_names[#delayed] = name_of(body)
    delays[#delayed] = string.format('%.0f', due - now)
    return
  end
  to_tail_by(priority, id)
  wakes = true
  added[#added + 1] = id
  added_names[#added] = name_of(body)
end

-- If the interval counts from the end of the last run, this script sets the next time when it sees that end. No run follows if the
-- caller has no next time.
local function wait_for_end(id, state, next_at, wait)
  local open = is_open(state.job)
  if not open then state.job = '' end
  state.revision = state.revision + 1
  set_next(id, state, (open or next_at < 0) and next_at or now + wait)
  write_state(id, state)
  return 0
end

local function fire(id, job_at, count, next_at, limit, overlap, wait)
  local state = read_state(id)
  if wait >= 0 and state.job ~= '' then return wait_for_end(id, state, next_at, wait) end
  local made = 0
  for i = job_at, job_at + (count - 1) * 5, 5 do
    if limit >= 0 and state.fired >= limit then break end
    local open = overlap ~= 'allow' and state.job ~= '' and state.job ~= ARGV[i] and is_open(state.job)
    if not (open and overlap == 'skip') then
      if open then replace(state.job) end
      make(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]))
      made = made + 1
      state.fired = state.fired + 1
      note_occurrence(state, ARGV[i + 2], ARGV[i])
    end
  end
  state.revision = state.revision + 1
  set_next(id, state, limit >= 0 and state.fired >= limit and -1 or next_at)
  write_state(id, state)
  return made
end

local answer = {}
local job_at = jobs_first
for i = schedules_first, schedules_last, 8 do
  local id, count = ARGV[i], tonumber(ARGV[i + 7])
  local score = redis.call('ZSCORE', key_upcoming, id)
  if read_state(id).revision == tonumber(ARGV[i + 1]) and score and tonumber(score) == tonumber(ARGV[i + 2]) then
    answer[#answer + 1] = fire(id, job_at, count, tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]), ARGV[i + 5],
      tonumber(ARGV[i + 6]))
  else
    answer[#answer + 1] = -1
  end
  job_at = job_at + 5 * count
end

if wakes or traces.has_freed then ring() end
if has_groups then flag_limits('g') end
local events = { count = 0 }
local function say_jobs(kind, ids, names, ...)
  if #ids > 0 then say(events, kind, #ids, table.concat(ids, '\n'), 'name', table.concat(names, '\n'), ...) end
end
say_jobs('removed', removed, removed_names, 'reason', 'replaced')
say_jobs('added', added, added_names)
say_jobs('delayed', delayed, delayed_names, 'delay', table.concat(delays, '\n'))
write_events(events, now)
return { redis.call('ZCOUNT', key_upcoming, '-inf', now), next_schedule(now), answer }
