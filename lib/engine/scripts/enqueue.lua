--@needs types, clock, bodies, line, due-score, lane, ending, bell, event
-- All or none. A job whose id is already in the queue, in whatever state, is left as it is and named in the answer.
local now = clock()
local last_seq, last_duplicates = recall(arg_seq)
if last_seq > arg_seq then return { 'stale' } end
if last_seq == arg_seq then return { 'stored', last_duplicates } end
local duplicates = {}
local added = 0

-- First everything is read that may be written, and nothing else: a call costs by what it adds.
if arg_maxEvents > 0 or ranked_first <= ranked_last then
  check_types(key_meta)
end
if plain_first <= plain_last then
  check_types(key_wait)
end
if ranked_first <= ranked_last then
  check_types(key_prioritized)
end
if priorities_first <= priorities_last then
  check_types(key_priorities)
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
local ranked, ranked_there = look(ranked_first, ranked_last, 3)
local later, later_there = look(later_first, later_last, 2)
if refusal then return refusal end
if any_there then
  check_types(key_completed, key_results, key_failures, key_progress, key_logs)
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
    if there[i] and not retire(ids[i], now) then
      duplicates[#duplicates + 1] = ids[i]
    else
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

local places
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
elseif not rung and (#plain > 0 or #ranked > 0) then
  ring()
end

local repeated = table.concat(duplicates, '\n')
remember(arg_seq, repeated)

if added > 0 then
  local events = { count = arg_jobs }
  for i = said_first, said_last do events[#events + 1] = ARGV[i] end
  if #duplicates > 0 then say(events, 'skip', 0, repeated) end
  write_events(events, now)
end
return { 'stored', repeated }
