--@needs traces, types, clock, bodies, body-lines, names, line, lines, slots, limits, due-score, lane, kept, ending, bell, event, workers, unique, aggregate, full
-- Adds all jobs of a call, or none. A job that waits, is delayed or runs holds its id. A new job with that id is a duplicate, and the
-- answer says in which state the existing job is. An ended job frees its id, unless the new job says otherwise (`idHeldBy`).
local now = clock()
local last_seq, last_duplicates = recall(arg_seq)
if last_seq > arg_seq then return { 'stale' } end
if last_seq == arg_seq then return { 'stored', last_duplicates } end
local duplicates, duplicate_ids, added = {}, {}, 0

-- Before any write, the script checks the types of the keys that it may write, and of no others, so the cost depends on what the call adds.
-- In a queue with lines, jobs with `lifo` go to the front of their lines. With aging, only the time of the wait counts, so they go to the
-- tail like all others. Reading `meta` checks its type too.
local limited = head_first <= head_last and redis.call('HGET', key_meta, 'limited') or ''
local has_aging = string.find(limited, 'a', 1, true)
local has_fronts = not has_aging and string.find(limited, '[gn]')
if has_fronts then check_types(key_stalls) end
if head_first > head_last and (arg_maxEvents > 0 or ranked_first <= ranked_last) then check_types(key_meta) end
if plain_first <= plain_last or head_first <= head_last then check_types(key_wait) end
if ranked_first <= ranked_last then check_types(key_prioritized) end
if priorities_first <= priorities_last then check_types(key_priorities) end
if grouped_first <= grouped_last then check_types(key_meta, key_grouped, key_lines, key_lineStates, key_ready, key_limits) end
local has_slots = false
local rung = redis.call('ZSCORE', key_doorbell, 'work')
local earliest = later_first <= later_last and first_due() or math.huge

-- The ids of one list, and for each the body of an existing job with that id. A job has `stride` values: id and body first.
local any_there, refusal = false, nil
local function look(first, last, stride)
  local ids, count = {}, 0
  for at = first, last, stride do count, ids[count + 1] = count + 1, ARGV[at] end
  if count == 0 then return ids, ids end
  local there = bodies_of(ids)
  if there.err then refusal = there end
  for i = 1, count do any_there = any_there or there[i] ~= false end
  return ids, there
end

local plain, plain_there = look(plain_first, plain_last, 2)
local head, head_there = look(head_first, head_last, 2)
local ranked, ranked_there = look(ranked_first, ranked_last, 3)
local later, later_there = look(later_first, later_last, 2)
local grouped, grouped_there = look(grouped_first, grouped_last, 4)
if refusal then return refusal end

-- The states of existing jobs, by id.
local state_of = {}
local function find_state(id, body)
  if redis.call('ZSCORE', key_dead, id) then return 'dead' end
  local kept_until = redis.call('ZSCORE', key_completed, id)
  local state = kept_until and (kept_state(kept_until, now) or 'gone')
  if state then return state == 'completed' and is_awaited(id, body, now) and 'awaited' or state end
  if redis.call('ZSCORE', key_delayed, id) then return 'delayed' end
  if redis.call('ZSCORE', key_prioritized, id) or redis.call('ZSCORE', key_grouped, id) then return 'waiting' end
  for i = more_first, more_last do if redis.call('SISMEMBER', KEYS[i], id) == 1 then return 'active' end end
  return redis.call('EXISTS', key_wait, key_suspects) == 0 and 'active' or 'in line'
end

-- For new jobs with a key, by id: the row of the key, with its holder.
local keyed, in_line = {}, false
for i = unique_first, unique_last, 9 do
  local row = row_of(ARGV[i + 1])
  row.ms, row.states, row.on = tonumber(ARGV[i + 2]), ' ' .. ARGV[i + 3] .. ' ', ARGV[i + 4]
  row.body = row.on ~= 'aggregate' and body_with(row.holder, row.digest)
  row.state = row.body and find_state(row.holder, row.body)
  in_line = in_line or row.state == 'in line'
  row.delay, row.longest, row.most, row.most_bytes = tonumber(ARGV[i + 5]), tonumber(ARGV[i + 6]), tonumber(ARGV[i + 7]), tonumber(ARGV[i + 8])
  keyed[ARGV[i]] = row
  row.rival = row.on == 'again' and rival_in(row, ARGV[i])
end
if unique_first <= unique_last then
  check_types(key_unique, key_meta, key_wait, key_prioritized, key_delayed, key_priorities, key_attempts, key_dead, key_completed)
end
if any_there or arg_onFull == 'dropOldest' then
  has_slots = (tonumber(redis.pcall('ZCARD', key_slots)) or 0) > 0
  check_types(key_dead, key_completed, key_suspects, key_results, key_attempts, key_stalls, key_failures, key_progress, key_logs)
  for _, list in ipairs({ { plain, plain_there }, { head, head_there }, { ranked, ranked_there }, { later, later_there },
    { grouped, grouped_there } }) do
    for i, id in ipairs(list[1]) do
      if list[2][i] then
        state_of[id] = find_state(id, list[2][i])
        in_line = in_line or state_of[id] == 'in line'
      end
    end
  end
end
-- Only the active sets show whether such a job waits or runs. Their keys need the names of the workers, which the caller must send.
local workers = in_line and table.concat(leased_workers(), '\n') or arg_workers
if workers ~= arg_workers then return { 'again', workers } end

local holds = {}
for i = holds_first, holds_last, 2 do holds[ARGV[i]] = ' ' .. ARGV[i + 1] .. ' ' end

-- Whether an existing job holds the id.
local function is_taken(id, state)
  local is_ended = state == 'gone' or state == 'dead' or state == 'completed' or state == 'cancelled'
  return state ~= nil and (not is_ended or string.find(holds[id] or '', ' ' .. state .. ' ', 1, true) ~= nil)
end

-- The state of the job that holds a key, and whether the key counts.
local function standing_of(row)
  local state = row.state == 'in line' and 'waiting' or row.state == 'awaited' and 'completed' or row.state ~= 'gone' and row.state or nil
  local is_held = row.till > now or (state and string.find(row.states, ' ' .. state .. ' ', 1, true) ~= nil)
  if row.on == 'debounce' and is_held and redis.call('HEXISTS', key_attempts, row.holder) == 1 then is_held = false end
  return state, is_held
end

-- Whether a new job with this key is not put into the line.
local function is_kept_out(row)
  if row.on == 'again' then return row.rival end
  local state, is_held = standing_of(row)
  local is_over = state ~= 'waiting' and state ~= 'delayed' and state ~= 'active'
  if next_of(row) then return not is_over and (is_held or row.on == 'keepLast') end
  return is_held
end

-- Whether a job of this call is a duplicate. `body` is that of an existing job with its id.
local function is_duplicate(id, body) return keyed[id] and is_kept_out(keyed[id]) or body and is_taken(id, state_of[id]) end

-- The first group that would have more jobs than it may have, with the duplicates of the call, which need no room.
local function full_group()
  local sizes, names, need_no_room = {}, {}, {}
  for i, id in ipairs(grouped) do
    local name = ARGV[grouped_first + 4 * i - 2]
    if is_duplicate(id, grouped_there[i]) then need_no_room[#need_no_room + 1] = id else
      if not sizes[name] then names[#names + 1] = name end
      sizes[name] = (sizes[name] or 0) + 1
    end
  end
  local rules = redis.call('HMGET', key_limits, 'g', unpack(names))
  local defaults = limits_in(rules[1])
  for i, name in ipairs(names) do
    local most = limits_in(rules[i + 1], defaults).maxSize
    local number = most and redis.call('HGET', key_lines, name)
    local size = number and size_of_line(numbers_in(line_in(redis.call('HGET', key_lineStates, number)), tonumber(number))) or 0
    if most and size + sizes[name] > most then
      note_full(tostring(most), name, now)
      return { 'full', name, tostring(size), tostring(most), table.concat(need_no_room, '\n') }
    end
  end
end
local full = grouped_first <= grouped_last and full_group()
if full then return full end

-- At most `arg_maxWaiting` jobs may wait. A refused call adds nothing. A call that drops the oldest jobs may remove any of them, so
-- their keys are checked first.
if arg_maxWaiting > 0 then
  check_types(key_wait, key_suspects, key_prioritized, key_grouped, key_meta)
  if arg_onFull == 'dropOldest' then check_bodies() end
  local new, waiting, need_no_room = 0, count_waiting(), {}
  for _, list in ipairs({ { plain, plain_there }, { head, head_there }, { ranked, ranked_there }, { grouped, grouped_there } }) do
    for i, id in ipairs(list[1]) do
      if is_duplicate(id, list[2][i]) then need_no_room[#need_no_room + 1] = id else new = new + 1 end
    end
  end
  if arg_onFull ~= 'dropOldest' and new > 0 and waiting + new > arg_maxWaiting then
    note_full(arg_maxWaiting, arg_onFull, now)
    return { 'queue-full', waiting, table.concat(need_no_room, '\n') }
  end
end

local sooner, is_new_work, updated, replaced, replaced_names = false, false, {}, {}, {}

local function refuse(id, state, row, is_changed)
  local by = row and '\t' .. row.holder .. '\t' .. (is_changed and '1' or '') .. (row.size and '+' .. row.size or '') or ''
  duplicates[#duplicates + 1], duplicate_ids[#duplicate_ids + 1] = state .. ' ' .. id .. by, id
  if is_changed then updated[#updated + 1] = row.holder end
  return false
end

-- The new body replaces that of a waiting job, which keeps its id.
local function change(id, row, state, holder, body)
  row.holder = holder
  put_body(holder, body)
  return refuse(id, state, row, true)
end

-- The open job of each key, and all open jobs that this call has met.
local open_by_key, collectors = {}, {}

-- The data of the new job is added to the open job of its key. If there is none, the new job becomes the open one.
local function is_collector(id, body, row)
  local items, job = items_in(body) or '', open_by_key[row.digest] or open_collector(row)
  if job and not open_by_key[row.digest] then collectors[#collectors + 1] = job end
  if job and job.size < row.most and job.bytes + #items < row.most_bytes then
    open_by_key[row.digest] = job
    collect_item(job, row, items, now)
    return refuse(id, 'delayed', { holder = job.id, size = job.size })
  end
  if job then job.is_over = true end
  local new = collector(id, row.digest, body, now, now + row.ms)
  new.is_new, open_by_key[row.digest], collectors[#collectors + 1] = true, new, new
  return true
end

-- Whether the key of a new job is free. If it is not, this function changes the holder, parks the new job until the holder ends, or
-- refuses the new job.
local function is_key_free(id, body, priority)
  local row = keyed[id]
  if not row then return true end
  if row.on == 'aggregate' then return is_collector(id, body, row) end
  local state, is_held = standing_of(row)
  if row.on == 'again' then
    row.is_own, row.holder = row.holder == id, row.rival or row.holder
    return not row.rival or refuse(id, row.rival == row.next and 'delayed' or state, row)
  end
  local waits = state == 'waiting' or state == 'delayed'
  local is_over = not (waits or state == 'active')
  local next_id = next_of(row)
  if next_id and row.on == 'keepLast' and not is_over then
    change_priority(next_id, priority)
    return change(id, row, 'delayed', next_id, body)
  end
  if next_id and (is_over or not is_held) then
    -- The job that waited for the end of the holder has the key now.
    if is_over and row.on ~= 'skip' then change_priority(next_id, priority) end
    hand_on(row, now)
    is_new_work = true
    if is_over and row.on == 'skip' then return refuse(id, 'waiting', row) end
    if is_over then return change(id, row, 'waiting', next_id, body) end
  end
  if not is_held then return true end
  if row.on == 'keepLast' and state == 'active' then
    put_body(id, body)
    park(id, priority)
    put_row(row.digest, row.holder, row.till, row.since, id)
    added, duplicates[#duplicates + 1] = added + 1, 'parked ' .. id
    return false
  end
  if row.on == 'debounce' then
    local due = row.longest > 0 and math.max(now, math.min(now + row.delay, row.since + row.longest)) or now + row.delay
    sooner = sooner or due < earliest
    delay_until(string.format('%.0f', due), row.holder, 0, { own = {}, made = {} })
    change_priority(row.holder, priority)
    return change(id, row, state, row.holder, body)
  end
  if row.on ~= 'skip' and waits and row.body and options_line_of(row.body) and name_of(row.body) == name_of(body) then
    return change(id, row, state, row.holder, with_lines(row.body, nil, string.match(body, '^[^\n]+\n[^\n]+\n[^\n]*\n(.*)$')))
  end
  return refuse(id, state or '-', row)
end

-- Whether the id is free for a new job. If it is, records of an ended job with that id are removed.
local function is_free(id, body)
  local state = body and state_of[id]
  if not state then return true end
  if is_taken(id, state) then
    return refuse(id, state == 'awaited' and 'completed' or state == 'in line' and 'waiting' or state)
  end
  if state ~= 'gone' then replaced[#replaced + 1], replaced_names[#replaced + 1] = id, name_of(body) end
  forget_ended({ id })
  -- A dead job that stopped its group had a slot.
  if has_slots and release_slots({ id }, 'gone') then is_new_work = true end
  return true
end

-- The priorities of delayed jobs with a key, by id.
local later_priorities = {}
if unique_first <= unique_last then
  for i = priorities_first, priorities_last, 2 do later_priorities[ARGV[i]] = tonumber(ARGV[i + 1]) end
end

-- Stores the bodies of new jobs. Returns their ids, and the index of each in ARGV (nil if all jobs are new).
local function store(ids, there, first, last, stride)
  if not any_there and stride == 2 and unique_last < unique_first then
    if #ids > 0 then put_bodies(ids, ARGV, first, last) end
    added = added + #ids
    return ids
  end
  local new, places, fields = {}, {}, {}
  for i = 1, #ids do
    local at = first + (i - 1) * stride
    local priority = stride > 2 and tonumber(ARGV[at + stride - 1]) or later_priorities[ids[i]] or 0
    local row = keyed[ids[i]]
    -- If a call is repeated long after, its jobs exist already. Each is then a duplicate of itself, not of the holder of its key.
    local is_itself = there[i] and not (row and row.on == 'again')
    if (is_itself or is_key_free(ids[i], ARGV[at + 1], priority)) and is_free(ids[i], there[i]) then
      if row and not row.is_own then put_row(row.digest, ids[i], row.ms > 0 and now + row.ms or 0, now, '') end
      new[#new + 1], places[#places + 1] = ids[i], at
      fields[#fields + 1], fields[#fields + 2] = ids[i], ARGV[at + 1]
    end
  end
  if #new > 0 then put_bodies(new, fields, 1, #fields) end
  added = added + #new
  return new, places
end

plain = store(plain, plain_there, plain_first, plain_last, 2)
to_tail(plain)
head = store(head, head_there, head_first, head_last, 2)
if has_aging then to_tail(head) else to_front(head) end
-- The next claim puts them into their lines.
if has_fronts then mark_front(head) end

local places
grouped, places = store(grouped, grouped_there, grouped_first, grouped_last, 4)
if #grouped > 0 then
  local names, priorities = {}, {}
  for i = 1, #grouped do names[i], priorities[i] = ARGV[places[i] + 2], tonumber(ARGV[places[i] + 3]) end
  to_lines(grouped, names, priorities)
end

ranked, places = store(ranked, ranked_there, ranked_first, ranked_last, 3)
for i = 1, #ranked do to_tail_by(tonumber(ARGV[places[i] + 2]), ranked[i]) end

later, places = store(later, later_there, later_first, later_last, 2)
-- Times stay text, as they came: formatting a number for every job takes longer.
local scores, from_now, seen_due = {}, {}, { own = {}, made = {} }
for i = 1, #later do
  local nth = places and (places[i] - later_first) / 2 or i - 1
  local due = ARGV[times_first + nth]
  if string.byte(due) == 43 then
    from_now[due] = from_now[due] or string.format('%.0f', now + tonumber(due))
    due = from_now[due]
  end
  due = due_score(later[i], due, seen_due)
  scores[2 * i - 1], scores[2 * i] = due, later[i]
  if not sooner and tonumber(due) < earliest then sooner = true end
end
if priorities_first <= priorities_last then
  local is_new = {}
  for i = 1, #later do is_new[later[i]] = true end
  for i = priorities_first, priorities_last, 2 do
    if is_new[ARGV[i]] then keep_priority(ARGV[i], ARGV[i + 1]) end
  end
end

if #scores > 0 then delay_all(scores) end
for _, job in ipairs(collectors) do
  if job.is_grown and not job.is_new then updated[#updated + 1] = job.id end
  -- A new job with one item is stored already.
  local is_changed = job.is_grown or job.is_over
  if is_changed and store_collected(job) then is_new_work = true elseif is_changed and job.till < earliest then sooner = true end
end

if sooner then ring_sooner() elseif not rung and (is_new_work or #plain + #head + #ranked + #grouped > 0) then ring() end

-- These events have a stream entry of their own, because `skip` applies to a whole entry.
local more = { count = 0 }
if #updated > 0 then say(more, 'updated', #updated, table.concat(updated, '\n'), 'name', names_of(updated)) end

-- Makes room. The answer lists the new jobs that were removed because no other job may be removed; the rows of their keys are as
-- before. It ends with the number of the other jobs that were removed.
-- A job that has replaced an ended one stays: the ended job would be lost with it.
local function drop_oldest(count)
  local is_new, stays, others = {}, {}, 0
  for _, list in ipairs({ plain, head, ranked }) do for _, id in ipairs(list) do is_new[id] = true end end
  for _, id in ipairs(replaced) do is_new[id], stays[id] = nil, true end
  local over = take_oldest(count, is_new, function(id) return stays[id] or group_of(body_of(id) or '') ~= nil end)
  -- Jobs of groups stay, but a new one is not added if there is no room for it.
  for _, id in ipairs(grouped) do
    if #over < count and not stays[id] then
      over[#over + 1], is_new[id] = id, true
      leave_ranked(key_grouped, { id })
    end
  end
  if #over == 0 then return end
  note_full(arg_maxWaiting, arg_onFull, now)
  for _, id in ipairs(over) do
    if is_new[id] then duplicates[#duplicates + 1] = 'dropped ' .. id else others = others + 1 end
    local row = is_new[id] and keyed[id]
    if row then put_row(row.digest, row.holder, row.till, row.since, row.next) end
  end
  if others > 0 then duplicates[#duplicates + 1] = 'removed ' .. others end
  say_removed(more, over, add_names({}, bodies_of(over)), 'dropped')
  forget_ended(over)
  if has_slots then release_slots(over, 'gone') end
  drop_bodies(unpack(over))
end
if arg_onFull == 'dropOldest' then drop_oldest(math.min(count_waiting() - arg_maxWaiting, 1000)) end

local repeated = table.concat(duplicates, '\n')
remember(arg_seq, repeated)

if added > 0 then
  local events = { count = 0 }
  if arg_groups == 1 then flag_limits('g') end
  if #replaced > 0 then say_removed(events, replaced, replaced_names, 'replaced') end
  events.count = events.count + arg_jobs
  for i = eventFields_first, eventFields_last do events[#events + 1] = ARGV[i] end
  if #duplicate_ids > 0 then say(events, 'skip', 0, table.concat(duplicate_ids, '\n')) end
  write_events(events, now)
end

write_events(more, now)
return { 'stored', repeated }
