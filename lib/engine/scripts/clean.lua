--@needs types, clock, bodies, names, traces, line, kept, ending, walk, dead, event, bell, unique
-- Removes jobs of one place that are old enough, starting after a place, or the named dead jobs.
check_bodies()
local now = clock()
local traces = read_traces()
check_types(key_grouped, key_meta, key_results, key_failures, key_prioritized, key_delayed, key_dead, key_completed, key_wait, key_suspects, key_doorbell, key_unique, key_priorities)

local names, digests = {}, {}
local function noted(fit, body)
  if fit then names[#names + 1], digests[#digests + 1] = name_of(body), unique_digest_of(body) end
  return fit
end

local function is_old(since)
  return arg_olderThan == 0 or (since ~= nil and since <= now - arg_olderThan)
end

local function take_by_adding(id)
  local body = body_of(id) or ''
  local fit = is_old(added_at(body))
  return noted(fit, body), #body + (fit and log_cost(id, traces) or 0)
end

local function take_by_end(id)
  local record = redis.call('HGET', key_results, id) or ''
  if not is_old(tonumber(string.match(record, '^(%d+)\n'))) then return false, #record end
  local body = body_of(id) or ''
  return noted(true, body), #body + #record + log_cost(id, traces)
end

local function take_dead(id)
  local fit, bytes, body = is_asked(id)
  return noted(fit, body), bytes + (fit and log_cost(id, traces) or 0)
end

-- Only the head of a line: the oldest jobs are there, and a removal from its middle has no limit in cost.
local function take_from_line(key)
  local found, left, spent, seen = {}, {}, 0, 0
  local head = redis.call('LRANGE', key, 0, arg_examine - 1)
  while seen < #head and #found < arg_limit and spent < arg_bytes do
    seen = seen + 1
    local fit, bytes = take_by_adding(head[seen])
    local side = fit and found or left
    side[#side + 1] = head[seen]
    spent = spent + bytes
  end
  if #found > 0 then leave_head(key, seen, left) end
  return found
end

local found, at, id = {}, '', ''
local key = ({ dead = key_dead, completed = key_completed, cancelled = key_completed, delayed = key_delayed, prioritized = key_prioritized,
  grouped = key_grouped })[arg_kind]
if arg_limit <= 0 then
  return { now, at, id, found }
elseif ids_last >= ids_first then
  found, id = walk_named(key, take_dead)
elseif arg_kind == 'wait' then
  found = take_from_line(key_wait)
elseif arg_kind == 'suspects' then
  found = take_from_line(key_suspects)
elseif arg_kind == 'dead' then
  local first, last = dead_range(now)
  found, at, id = walk(key, math.max(first, rank_behind(key)), last, take_dead)
elseif key == key_completed then
  local first, last = kept_ranks(arg_kind, now)
  found, at, id = walk(key, math.max(rank_behind(key), first), last, take_by_end)
else
  found, at, id = walk(key, rank_behind(key), redis.call('ZCARD', key) - 1, take_by_adding)
end

if #found > 0 then
  if arg_kind == 'dead' then
    leave_dead(found)
  elseif key == key_completed then
    leave_completed(found)
  elseif key then
    leave_ranked(key, found)
  end
  local events = { count = 0 }
  finish_removed(found, names, 'asked', events, traces)
  if free_keys(digests, now) or traces.has_freed then ring() end
  write_events(events, now)
end
return { now, at, id, found }
