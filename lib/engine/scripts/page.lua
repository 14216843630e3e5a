--@needs clock, names, kept, walk, dead, stored, body-lines, slots, lines
-- Jobs of one place, in its order or in the opposite order, starting after another job.
local now = clock()
local jobs = {}

local state_of = { wait = 'waiting', suspects = 'waiting', prioritized = 'waiting', grouped = 'waiting' }

local contains = string.lower(arg_contains)

local function has(text) return string.find(string.lower(text), contains, 1, true) ~= nil end

-- Each text is searched by itself: to join them first would copy a long failure once more. Returns also how
-- many bytes could be read meanwhile: to search a text takes about five times as long as to read it.
local function has_text(id, body)
  if contains == '' or has(id) or has(name_of(body)) then return true, 0 end
  local failure = last_failure(id)
  return has(failure), 5 * #failure
end

-- Whether the job ended, or was added, within these ages. Dead jobs are in the order of their ages: `dead_range` selects them.
local function is_of_age(id, body)
  if arg_kind == 'dead' or (arg_olderThan == 0 and arg_newerThan < 0) then return true end
  local since
  if arg_kind == 'completed' or arg_kind == 'cancelled' then
    since = tonumber(string.match(redis.call('HGET', key_results, id) or '', '^(%d+)\n') or '')
  else
    since = added_at(body)
  end
  return since ~= nil and since <= now - arg_olderThan and (arg_newerThan < 0 or since >= now - arg_newerThan)
end

-- Conditions on the data. Each has a text that the data of every matching job contains, the path to a field, and the value of the
-- field.
local where = arg_where ~= '' and cjson.decode(arg_where) or {}

-- cjson refuses half of a surrogate pair. No condition has one.
local function decode(json)
  local is_json, read = pcall(cjson.decode, json)
  if is_json then return true, read end
  return pcall(cjson.decode, (string.gsub(json, '\\u[dD][89a-fA-F]%x%x', '\\ufffd')))
end

-- Whether the data has these values in these fields. Data that lacks one of the texts is not decoded.
local function has_values(body)
  if #where == 0 then return true end
  local data = string.match(body, '^[^\n]*\n[^\n]*\n[^\n]*\n(.*)$') or ''
  for _, wanted in ipairs(where) do
    if not string.find(data, wanted[1], 1, true) then return false end
  end
  local is_json, read = decode(data)
  if not is_json then return false end
  for _, wanted in ipairs(where) do
    local value = read
    for _, step in ipairs(wanted[2]) do
      if type(value) ~= 'table' then return false end
      value = value[step]
    end
    if value ~= wanted[3] then return false end
  end
  return true
end

local function is_of_group(body) return arg_group == '' or group_of(body) == arg_group end

local function has_priority(body)
  if arg_priorityFrom < 0 then return true end
  local priority = priority_of(body)
  return priority >= arg_priorityFrom and priority <= arg_priorityTo
end

-- Called by `walk` for each job. A job that matches is read completely.
local function add_if_asked(id, score)
  local fit, bytes, body = is_asked(id)
  if not fit or not is_of_group(body) or not has_priority(body) or not is_of_age(id, body) then return false, bytes end
  local has_it, more = has_text(id, body)
  bytes = bytes + more
  if not has_it or not has_values(body) then return false, bytes end
  local at = score and string.format('%.0f', math.floor(score)) or ''
  local job = stored(id, body, state_of[arg_kind] or arg_kind, at, arg_worker, arg_brief == 1)
  for i = 5, 10 do bytes = bytes + #job[i] end
  table.insert(job, 1, id)
  jobs[#jobs + 1] = job
  return true, bytes
end

-- The ranks of the jobs of the group in `grouped`, in order. Each of its priorities has a range of its own.
local function ranks_of_group()
  local number, ranks = tonumber(redis.call('HGET', key_lines, 'g:' .. arg_group) or nil), {}
  local line = number and line_in(redis.call('HGET', key_lineStates, line_text(number)))
  local numbers = number and numbers_in(line, number) or {}
  table.sort(numbers)
  for _, each in ipairs(numbers) do
    local low, high = range_of(each)
    local count = redis.call('ZCOUNT', key_grouped, low, high)
    if count > 0 then
      local first = redis.call('ZCOUNT', key_grouped, '-inf', '(' .. low)
      ranks[#ranks + 1] = { first, first + count - 1 }
    end
  end
  return ranks
end

-- The next page of the jobs of the group: only they are looked at, however many others wait.
local function page_of_group(key)
  local behind, before = rank_behind(key), rank_before(key)
  local ranks, rest = ranks_of_group(), {}
  for i = 1, #ranks do
    local range = ranks[arg_backward == 1 and #ranks + 1 - i or i]
    local first, last = range[1], range[2]
    if arg_backward == 0 then first = math.max(first, behind) else last = math.min(last, before) end
    if first <= last then rest[#rest + 1] = { first, last } end
  end
  if #rest == 0 then return { now, '', '', 0, jobs } end
  local first, last = unpack(rest[1])
  local _, at, id, count = walk(key, first, last, add_if_asked, arg_backward == 1)
  if id == '' and #rest > 1 then
    local edge = arg_backward == 1 and first or last
    id, at = unpack(redis.call('ZRANGE', key, edge, edge, 'WITHSCORES'))
  end
  return { now, at, id, count, jobs }
end

local function page_of_sorted(key)
  local first, last
  if arg_kind == 'dead' then
    first, last = dead_range(now)
  elseif key == key_completed then
    first, last = kept_ranks(arg_kind, now)
  else
    first, last = 0, redis.call('ZCARD', key) - 1
  end
  if arg_backward == 0 then first = math.max(first, rank_behind(key)) + arg_skip else last = math.min(last, rank_before(key)) - arg_skip end
  local _, at, id, count = walk(key, first, last, add_if_asked, arg_backward == 1)
  return { now, at, id, count, jobs }
end

-- A part of a list, with indexes counted from the end at which the page began.
local function part_of(key, from, to)
  if arg_backward == 0 then return redis.call('LRANGE', key, from, to) end
  local part, reversed = redis.call('LRANGE', key, -1 - to, -1 - from), {}
  for i = #part, 1, -1 do reversed[#reversed + 1] = part[i] end
  return reversed
end

-- How far around their old index the jobs at the end of the previous page are searched.
local around = 2000

-- The index at which the page begins: behind the last listed job, or at the first job that was to come next. Nil if none of them is still
-- near its old index. A job that runs again goes to the end of its line, so of two indexes the one nearer to the head is right.
local function place_of(key)
  local listed, coming = string.match(arg_afterId, '^(.-)\n\n(.*)$')
  local is_listed, is_coming, last = {}, {}, nil
  for id in string.gmatch(listed or arg_afterId, '[^\n]+') do is_listed[id], last = true, id end
  for id in string.gmatch(coming or '', '[^\n]+') do is_coming[id] = true end
  -- Mostly the line has not moved, and reading a long part of it takes longer than the page.
  local at = tonumber(arg_afterAt)
  if part_of(key, at, at)[1] == last then return at + 1 end
  local from, behind, ahead = math.max(0, at - around), nil, nil
  for i, id in ipairs(part_of(key, from, from + 2 * around)) do
    if is_listed[id] then behind = from + i end
    if is_coming[id] and not ahead then ahead = from + i - 1 end
  end
  if not (behind and ahead) then return behind or ahead end
  return arg_backward == 1 and math.max(behind, ahead) or math.min(behind, ahead)
end

local function page_of_ids(ids, first, most)
  local seen, spent = 0, 0
  while seen < math.min(#ids, most) and #jobs < arg_limit and spent < arg_bytes do
    seen = seen + 1
    local _, bytes = add_if_asked(ids[seen])
    spent = spent + bytes
  end
  if seen == 0 or seen == #ids then return { now, '', '', seen, jobs } end
  -- The last three listed jobs and, after an empty line, the three that come next.
  local listed = table.concat(ids, '\n', math.max(1, seen - 2), seen)
  return { now, string.format('%.0f', first + seen - 1),
    listed .. '\n\n' .. table.concat(ids, '\n', seen + 1, math.min(#ids, seen + 3)), seen, jobs }
end

local function page_of_list(key)
  local first = 0
  if arg_afterId ~= '' then
    first = place_of(key)
    if not first then return { now, '', '', -1, redis.call('LLEN', key) } end
  end
  return page_of_ids(part_of(key, first, first + arg_examine + 2), first, arg_examine)
end

-- The jobs of one worker, ordered by id, because sets have no order.
local function page_of_held()
  local ids, rest = redis.call('SMEMBERS', key_active), {}
  table.sort(ids)
  for i = 1, #ids do
    local id = ids[arg_backward == 1 and #ids + 1 - i or i]
    if arg_afterId == '' or (arg_backward == 1 and id < arg_afterId) or (arg_backward == 0 and id > arg_afterId) then
      rest[#rest + 1] = id
    end
  end
  local page = page_of_ids(rest, 0, #rest)
  if page[3] ~= '' then page[2], page[3] = '', rest[page[4]] end
  return page
end

if arg_kind == 'wait' then return page_of_list(key_wait) end
if arg_kind == 'suspects' then return page_of_list(key_suspects) end
if arg_kind == 'active' then return page_of_held() end
if arg_kind == 'grouped' and arg_group ~= '' then return page_of_group(key_grouped) end
return page_of_sorted(({ dead = key_dead, completed = key_completed, cancelled = key_completed, delayed = key_delayed, prioritized = key_prioritized,
  grouped = key_grouped })[arg_kind])
