--@needs steps, count, due-score
-- Where jobs wait. `wait` is first in, first out. `prioritized` has jobs with a priority, which come after `wait`. `suspects` has
-- jobs that stalled twice or more, which run one at a time. `delayed` has jobs until they are due.

-- First in, first out inside one priority: 21 bits of priority above 32 bits of sequence fit exactly into a double.
local function rank(priority) return priority * rule_ranks + add_to(key_meta, 'ranks', 1) % rule_ranks end

local function to_tail(ids) in_steps(ids, function(...) redis.call('RPUSH', key_wait, ...) end) end

-- Last in, first out: the last of these jobs runs first.
local function to_front(ids) in_steps(ids, function(...) redis.call('LPUSH', key_wait, ...) end) end

local function to_tail_by(priority, id)
  if priority > 0 then redis.call('ZADD', key_prioritized, rank(priority), id) else redis.call('RPUSH', key_wait, id) end
end

-- Delays a job, and stores the priority that it will have in the line. `seen` is for `due_score`.
local function delay_until(due, id, priority, seen)
  redis.call('ZADD', key_delayed, due_score(id, due, seen), id)
  if priority > 0 then redis.call('HSET', key_priorities, id, priority) end
end

-- Delays many jobs: `scores` has scores and ids alternately. `keep_priority` stores the priority of one of them.
local function delay_all(scores) redis.call('ZADD', key_delayed, unpack(scores)) end

local function keep_priority(id, priority) redis.call('HSET', key_priorities, id, priority) end

-- Changes the priority of a delayed job. 0 means none.
local function change_priority(id, priority)
  if priority > 0 then keep_priority(id, priority) else redis.call('HDEL', key_priorities, id) end
end

-- Puts jobs back at the head of the line, in the given order.
local function push_to_head(ids)
  local reversed = {}
  for i = #ids, 1, -1 do reversed[#reversed + 1] = ids[i] end
  in_steps(reversed, function(...) redis.call('LPUSH', key_wait, ...) end)
end

-- Like `push_to_head`, but jobs that have stalled too often go to `suspects`.
local function to_head(ids)
  local stalls = {}
  in_steps(ids, function(...)
    for _, count in ipairs(redis.call('HMGET', key_stalls, ...)) do stalls[#stalls + 1] = count_in(count) end
  end)
  local suspects, others = {}, {}
  for i, id in ipairs(ids) do table.insert(stalls[i] >= rule_suspectAfter and suspects or others, id) end
  push_to_head(others)
  for i = #suspects, 1, -1 do redis.call('LPUSH', key_suspects, suspects[i]) end
end

local function to_suspects(ids) in_steps(ids, function(...) redis.call('RPUSH', key_suspects, ...) end) end

-- Counts the lists again after a move.
local function count_lists(places)
  places.waiting = redis.call('LLEN', key_wait)
  places.suspects = redis.call('LLEN', key_suspects)
end

-- Takes the first jobs of `wait` and `prioritized`, to sort them into other lines. Returns the ids of the first, and ids and
-- ranks alternately of the second.
local function take_arrivals(limit)
  local ids = redis.call('LPOP', key_wait, limit) or {}
  return ids, #ids < limit and redis.call('ZPOPMIN', key_prioritized, limit - #ids) or {}
end

-- Takes at most `want` jobs to run now: a suspect if `may_suspect`, then `wait`, then `prioritized`. `places` has the lengths of
-- the lists. Returns the ids, and what `put_back` needs.
local function take(want, may_suspect, places)
  local ids, from = {}, { ranked = {} }
  if places.suspects > 0 and may_suspect then
    ids = redis.call('LPOP', key_suspects, 1)
    from.suspect = ids[1]
  end
  if places.waiting > 0 and #ids < want then
    local waiting = redis.call('LPOP', key_wait, want - #ids)
    if #ids == 0 then ids = waiting else for i = 1, #waiting do ids[#ids + 1] = waiting[i] end end
  end
  if places.prioritized > 0 and #ids < want then
    from.ranked = redis.call('ZPOPMIN', key_prioritized, want - #ids)
    for i = 1, #from.ranked, 2 do ids[#ids + 1] = from.ranked[i] end
  end
  return ids, from
end

-- Puts a job back at its rank.
local function put_ranked(id, rank_before) redis.call('ZADD', key_prioritized, rank_before, id) end

-- Puts taken jobs, from index `first` on, back to where they came from.
local function put_back(ids, first, from)
  local plain = #ids - #from.ranked / 2
  for i = #ids, first, -1 do
    if i > plain then
      redis.call('ZADD', key_prioritized, from.ranked[2 * (i - plain)], ids[i])
    elseif i == 1 and from.suspect then
      redis.call('LPUSH', key_suspects, from.suspect)
    else
      redis.call('LPUSH', key_wait, ids[i])
    end
    ids[i] = nil
  end
end

-- Removes a job from wherever it waits. Returns whether it was found. Lists come last: a list must be searched, from the side
-- that `direction` says (1 or -1), and a long one takes long.
local function leave(id, direction)
  local found = redis.call('ZREM', key_delayed, id)
  if found == 0 then found = redis.call('ZREM', key_prioritized, id) end
  if found == 0 then found = redis.call('ZREM', key_grouped, id) end
  if found == 0 then found = redis.call('LREM', key_suspects, direction, id) end
  if found == 0 then found = redis.call('LREM', key_wait, direction, id) end
  return found > 0
end

-- Removes the first of these jobs from `wait`, and the others that are among the next 4,000 entries. Redis searches the list twice:
-- for the first job, and for all entries to remove. One LREM for each job would search it as often as there are jobs.
local function leave_wait(ids, left)
  local first = redis.call('LPOS', key_wait, ids[1])
  if not first then return end
  local is_asked, mark, marked = {}, '\n' .. ids[1], 0
  for _, id in ipairs(ids) do is_asked[id] = true end
  for i, id in ipairs(redis.call('LRANGE', key_wait, first, first + 3999)) do
    if is_asked[id] and not left[id] then
      redis.call('LSET', key_wait, first + i - 1, mark)
      left[id], marked = true, marked + 1
    end
  end
  local is_late = 2 * first > redis.call('LLEN', key_wait)
  redis.call('LREM', key_wait, is_late and -marked or marked, mark)
end

-- Like `leave`, for many jobs. Returns by id which jobs were found, and which the caller must ask for again: one call searches `wait`
-- for one job and the entries after it.
local function leave_some(ids)
  local left, later = {}, {}
  if #ids == 0 then return left, later end
  for _, key in ipairs({ key_delayed, key_prioritized, key_grouped }) do
    local there = {}
    for i, score in ipairs(redis.call('ZMSCORE', key, unpack(ids))) do
      if score then there[#there + 1], left[ids[i]] = ids[i], true end
    end
    if #there > 0 then redis.call('ZREM', key, unpack(there)) end
  end
  local missing = {}
  for _, id in ipairs(ids) do
    left[id] = left[id] or redis.call('LREM', key_suspects, 1, id) == 1
    if not left[id] then missing[#missing + 1] = id end
  end
  if #missing == 1 then left[missing[1]] = redis.call('LREM', key_wait, 1, missing[1]) == 1 end
  if #missing > 1 then
    leave_wait(missing, left)
    for i = 2, #missing do later[missing[i]] = not left[missing[i]] end
  end
  return left, later
end

-- Removes many jobs from a sorted set. `leave_head` removes the first `seen` entries of a list, except those in `stay`.
local function leave_ranked(key, ids) redis.call('ZREM', key, unpack(ids)) end

local function leave_head(key, seen, stay)
  redis.call('LPOP', key, seen)
  for i = #stay, 1, -1 do redis.call('LPUSH', key, stay[i]) end
end

-- Moves due delayed jobs to the line, at most `limit`. Jobs with a priority keep it.
local function promote_due(limit, now)
  local due = redis.call('ZRANGE', key_delayed, '-inf', '(' .. now + 1, 'BYSCORE', 'LIMIT', 0, limit)
  if #due == 0 then return 0 end
  redis.call('ZREMRANGEBYRANK', key_delayed, 0, #due - 1)
  local plain = due
  if redis.call('HLEN', key_priorities) > 0 then
    plain = {}
    for i, text in ipairs(redis.call('HMGET', key_priorities, unpack(due))) do
      local priority = priority_in(text)
      if priority > 0 then to_tail_by(priority, due[i]) else plain[#plain + 1] = due[i] end
    end
    redis.call('HDEL', key_priorities, unpack(due))
  end
  to_tail(plain)
  return #due
end

-- Moves one delayed job to the line now. Returns whether it was delayed.
local function promote(id)
  local priority = priority_in(redis.call('HGET', key_priorities, id))
  if redis.call('ZREM', key_delayed, id) == 0 then return false end
  redis.call('HDEL', key_priorities, id)
  to_tail_by(priority, id)
  return true
end

-- When the first delayed job is due. Infinity if there is none.
local function first_due()
  local first = redis.call('ZRANGE', key_delayed, 0, 0, 'WITHSCORES')
  return tonumber(first[2]) or math.huge
end

-- Ms until the first delayed job is due. -1 if there is none.
local function next_due(now)
  local due = first_due()
  return due < math.huge and math.max(0, math.floor(due) - now) or -1
end

-- Delays a job that waits for the end of another one to the latest possible time.
local function park(id, priority)
  redis.call('ZADD', key_delayed, rule_parkedAt, id)
  if priority > 0 then redis.call('HSET', key_priorities, id, priority) end
end

local function is_parked(id) return tonumber(redis.call('ZSCORE', key_delayed, id)) == rule_parkedAt end

local function parked(limit)
  return redis.call('ZRANGE', key_delayed, rule_parkedAt, rule_parkedAt, 'BYSCORE', 'LIMIT', 0, limit)
end

local function count_waiting()
  return redis.call('LLEN', key_wait) + redis.call('LLEN', key_suspects) + redis.call('ZCARD', key_prioritized) + redis.call('ZCARD', key_grouped)
end

-- Removes the jobs that have waited longest. Of jobs with a priority it removes those that would run last, and jobs in `is_new` without
-- a priority come last. Some jobs stay; it looks at no more than 1,000 of them.
local function take_oldest(count, is_new, stays)
  local ids, skipped, stay, behind = {}, {}, {}, 0
  while #ids < count and #skipped < 1000 do
    local some = redis.call('LPOP', key_wait, math.min(count - #ids, 1000 - #skipped))
    if not some then break end
    for _, id in ipairs(some) do table.insert((is_new[id] or stays(id)) and skipped or ids, id) end
  end
  while #ids < count and behind < 1000 do
    local gone, some = {}, redis.call('ZRANGE', key_prioritized, behind, behind + math.min(count - #ids, 1000 - behind) - 1, 'REV')
    if #some == 0 then break end
    for _, id in ipairs(some) do if stays(id) then behind = behind + 1 else table.insert(gone, id) end end
    if #gone > 0 then leave_ranked(key_prioritized, gone) end
    for _, id in ipairs(gone) do table.insert(ids, id) end
  end
  for _, id in ipairs(skipped) do table.insert(#ids < count and is_new[id] and ids or stay, id) end
  push_to_head(stay)
  return ids
end
