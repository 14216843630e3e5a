--@needs types, clock, bodies, names, line, lines, limits, due-score, lane, kept, ending, bell, event, workers
-- All or none. A job that waits, is delayed or runs holds its id: a new one with that id is a duplicate, and the answer says in which state the
-- other is. A job that has ended gives its id away, unless the new one asks otherwise.
local now = clock()
local last_seq, last_duplicates = recall(arg_seq)
if last_seq > arg_seq then return { 'stale' } end
if last_seq == arg_seq then return { 'stored', last_duplicates } end
local duplicates, duplicate_ids = {}, {}
local added = 0

-- First everything is read that may be written, and nothing else: a call costs by what it adds.
if arg_maxEvents > 0 or ranked_first <= ranked_last then
  check_types(key_meta)
end
if plain_first <= plain_last or head_first <= head_last then
  check_types(key_wait)
end
if ranked_first <= ranked_last then
  check_types(key_prioritized)
end
if priorities_first <= priorities_last then
  check_types(key_priorities)
end
if grouped_first <= grouped_last then
  check_types(key_meta, key_grouped, key_lines, key_lineStates, key_ready, key_limits)
end
local rung = redis.call('ZSCORE', key_doorbell, 'work')
local earliest = later_first <= later_last and first_due() or math.huge

-- The ids of one list, and whether a job of that id is there, for each; `stride` values make one job, id and body first.
local any_there, refusal = false, nil
local function look(first, last, stride)
  local ids, count = {}, 0
  for at = first, last, stride do
    count = count + 1
    ids[count] = ARGV[at]
  end
  if count == 0 then return ids, ids end
  local there = bodies_of(ids)
  if there.err then refusal = there end
  for i = 1, count do
    if there[i] then
      any_there = true
      break
    end
  end
  return ids, there
end

local plain, plain_there = look(plain_first, plain_last, 2)
local head, head_there = look(head_first, head_last, 2)
local ranked, ranked_there = look(ranked_first, ranked_last, 3)
local later, later_there = look(later_first, later_last, 2)
local grouped, grouped_there = look(grouped_first, grouped_last, 4)
if refusal then return refusal end

-- By the id of those that are there: the state they are in.
local state_of = {}
local function find_state(id, body)
  if redis.call('ZSCORE', key_dead, id) then return 'dead' end
  local kept_until = redis.call('ZSCORE', key_completed, id)
  if kept_until then
    local state = kept_state(kept_until, now) or 'gone'
    return state == 'completed' and is_awaited(id, body, now) and 'awaited' or state
  end
  if redis.call('ZSCORE', key_delayed, id) then return 'delayed' end
  if redis.call('ZSCORE', key_prioritized, id) or redis.call('ZSCORE', key_grouped, id) then return 'waiting' end
  for i = more_first, more_last do
    if redis.call('SISMEMBER', KEYS[i], id) == 1 then return 'active' end
  end
  return redis.call('EXISTS', key_wait, key_suspects) == 0 and 'active' or 'in line'
end

local replaced, replaced_names = {}, {}
if any_there then
  check_types(key_dead, key_completed, key_suspects, key_results, key_attempts, key_stalls, key_failures, key_progress, key_logs)
  local in_line = false
  for _, list in ipairs({ { plain, plain_there }, { head, head_there }, { ranked, ranked_there }, { later, later_there },
    { grouped, grouped_there } }) do
    for i, id in ipairs(list[1]) do
      if list[2][i] then
        state_of[id] = find_state(id, list[2][i])
        in_line = in_line or state_of[id] == 'in line'
      end
    end
  end
  -- Whether it waits or runs only the active sets tell, and the caller must name their workers.
  local workers = in_line and table.concat(leased_workers(), '\n') or arg_workers
  if workers ~= arg_workers then return { 'again', workers } end
end

-- All of a call or none, so duplicates count as well.
local function full_group()
  local sizes, names = {}, {}
  for at = grouped_first, grouped_last, 4 do
    local name = ARGV[at + 2]
    if not sizes[name] then names[#names + 1] = name end
    sizes[name] = (sizes[name] or 0) + 1
  end
  local rules = redis.call('HMGET', key_limits, 'g', unpack(names))
  for i, name in ipairs(names) do
    local most = (rules[1] or rules[i + 1]) and limits_in(rules[i + 1], limits_in(rules[1])).maxSize
    local number = most and redis.call('HGET', key_lines, name)
    local size = number and size_of_line(numbers_in(line_in(redis.call('HGET', key_lineStates, number)), tonumber(number))) or 0
    if most and size + sizes[name] > most then return { 'full', name, tostring(size), tostring(most) } end
  end
end
local full = grouped_first <= grouped_last and full_group()
if full then return full end

local holds = {}
for i = holds_first, holds_last, 2 do holds[ARGV[i]] = ' ' .. ARGV[i + 1] .. ' ' end

-- Whether the id is free for a new job; what was there before is forgotten then.
local function is_free(id, body)
  local state = body and state_of[id]
  if not state then return true end
  local is_ended = state == 'gone' or state == 'dead' or state == 'completed' or state == 'cancelled'
  if not is_ended or string.find(holds[id] or '', ' ' .. state .. ' ', 1, true) then
    local shown = state == 'awaited' and 'completed' or state == 'in line' and 'waiting' or state
    duplicates[#duplicates + 1] = shown .. ' ' .. id
    duplicate_ids[#duplicate_ids + 1] = id
    return false
  end
  if state ~= 'gone' then
    replaced[#replaced + 1] = id
    replaced_names[#replaced] = name_of(body)
  end
  forget_ended({ id })
  return true
end

-- Stores the bodies of those that are new; answers them, and where in ARGV each of them stands (nil: all, as they came).
local function store(ids, there, first, last, stride)
  if not any_there and stride == 2 then
    if #ids > 0 then put_bodies(ids, ARGV, first, last) end
    added = added + #ids
    return ids
  end
  local new, places, fields = {}, {}, {}
  for i = 1, #ids do
    local at = first + (i - 1) * stride
    if is_free(ids[i], there[i]) then
      new[#new + 1] = ids[i]
      places[#places + 1] = at
      fields[#fields + 1] = ids[i]
      fields[#fields + 1] = ARGV[at + 1]
    end
  end
  if #new > 0 then put_bodies(new, fields, 1, #fields) end
  added = added + #new
  return new, places
end

plain = store(plain, plain_there, plain_first, plain_last, 2)
to_tail(plain)
head = store(head, head_there, head_first, head_last, 2)
to_front(head)

local places
grouped, places = store(grouped, grouped_there, grouped_first, grouped_last, 4)
if #grouped > 0 then
  local names, priorities = {}, {}
  for i = 1, #grouped do names[i], priorities[i] = ARGV[places[i] + 2], tonumber(ARGV[places[i] + 3]) end
  to_lines(grouped, names, priorities)
  flag_limits('g')
end

ranked, places = store(ranked, ranked_there, ranked_first, ranked_last, 3)
for i = 1, #ranked do
  to_tail_by(tonumber(ARGV[places[i] + 2]), ranked[i])
end

later, places = store(later, later_there, later_first, later_last, 2)
local sooner = false
-- Times stay text as they came: a number would be written anew for every job.
local scores, from_now, seen_due = {}, {}, { own = {}, made = {} }
for i = 1, #later do
  local nth = places and (places[i] - later_first) / 2 or i - 1
  local due = ARGV[times_first + nth]
  if string.byte(due) == 43 then
    local sum = from_now[due] or string.format('%.0f', now + tonumber(due))
    from_now[due] = sum
    due = sum
  end
  due = due_score(later[i], due, seen_due)
  scores[2 * i - 1] = due
  scores[2 * i] = later[i]
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

if sooner then
  ring_sooner()
elseif not rung and #plain + #head + #ranked + #grouped > 0 then
  ring()
end

local repeated = table.concat(duplicates, '\n')
remember(arg_seq, repeated)

if added > 0 then
  local events = { count = 0 }
  if #replaced > 0 then say_removed(events, replaced, replaced_names, 'replaced') end
  events.count = events.count + arg_jobs
  for i = said_first, said_last do events[#events + 1] = ARGV[i] end
  if #duplicates > 0 then say(events, 'skip', 0, table.concat(duplicate_ids, '\n')) end
  write_events(events, now)
end
return { 'stored', repeated }
