--@needs types, clock, body-lines, bodies, names, traces, line, ending, walk, dead, unique, limits, bell, event
-- Moves dead jobs back to the line with their priority: the named jobs, or the next ones that match. Their attempts and stalls
-- start again at 0, and their failure and their deadline are deleted. They never expire, because somebody wants them run. A corrupt job
-- cannot be retried, nor a job with `unique` while another job that has not ended has its key.
check_bodies()
local now = clock()
local traces = read_traces()
check_types(key_meta, key_wait, key_prioritized, key_dead, key_completed, key_delayed, key_unique, key_doorbell, key_failures)

local retried, names, priorities, has_groups = {}, {}, {}, false
-- The new bodies of jobs whose body changes.
local bodies = {}
-- Jobs that stay dead and, after each, the job that has its key; the keys that the chosen jobs take, with their jobs.
local refused, takers = {}, {}
local function has_rival(id, body)
  local digest = unique_digest_of(body)
  local row = digest and row_of(digest)
  local rival = row and (takers[row.digest] or rival_in(row, id))
  if rival then refused[#refused + 1], refused[#refused + 2] = id, rival end
  if row and not rival then takers[row.digest] = id end
  return rival and true or false
end

local function choose(id)
  local fit, bytes, body = is_asked(id)
  fit = fit and body ~= '' and (arg_data == '' or options_line_of(body) ~= nil) and not has_rival(id, body)
  if fit then
    names[#names + 1] = name_of(body)
    priorities[#priorities + 1] = priority_of(body)
    has_groups = has_groups or group_of(body) ~= nil
    local deadline = option_of(body, 'deadline', 'number')
    -- Only this value changes: reading and writing the JSON could change others.
    local options = deadline and (string.gsub(options_line_of(body), '"deadline":%d+', '"deadline":null', 1))
    if options or arg_data ~= '' then bodies[id] = with_lines(body, options, arg_data ~= '' and arg_data or nil) end
    bytes = bytes + log_cost(id, traces)
  end
  return fit, bytes
end

local at, id = '', ''
if ids_last >= ids_first then
  retried, id = walk_named(key_dead, choose)
elseif arg_limit > 0 then
  local first, last = dead_range(now)
  retried, at, id = walk(key_dead, math.max(first, rank_behind(key_dead)), last, choose)
end
if #retried > 0 then
  leave_dead(retried)
  for one, body in pairs(bodies) do put_body(one, body) end
  -- A dead job has a slot only if it stops its group. It keeps the slot, so that it starts before the waiting jobs of the group.
  traces.has_slots = false
  forget_traces(retried, traces)
  mark_started(retried)
  for digest, one in pairs(takers) do
    if row_of(digest).holder ~= one then put_row(digest, one, 0, now, '') end
  end
  local plain = {}
  for i, one in ipairs(retried) do
    if priorities[i] > 0 then
      to_tail_by(priorities[i], one)
    else
      plain[#plain + 1] = one
    end
  end
  to_tail(plain)
  if has_groups then flag_limits('g') end
  ring()
  local events = { count = 0 }
  say(events, 'added', #retried, table.concat(retried, '\n'), 'name', table.concat(names, '\n'))
  write_events(events, now)
end
return { now, at, id, retried, refused }
