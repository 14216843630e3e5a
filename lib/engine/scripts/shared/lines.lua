--@needs steps, count, slots
-- A line has the waiting jobs of one group, or of one job name with limits.
-- `grouped` has the jobs of all lines. The score is the number of the line and a rank, so a line is a range of scores.
-- `lines`: name -> number. Each priority of a group has a number of its own, under the name, a line break and the priority.
-- `lineStates`: number -> turn, priorities, name.
-- `ready` has the lines whose jobs may start, by turn, or by running jobs and then by turn. 0 means that a claim must look at the line first.
-- `resting` has the lines whose rate is used up, by the time at which it opens.
-- A line that is in neither waits for a slot, or is paused. If many lines are in `ready`, some that wait for a slot are too.

-- Where the jobs of a line begin and end in `grouped`.
local function range_of(number) return string.format('%d', number * rule_ranks), string.format('(%d', (number + 1) * rule_ranks) end

-- `%d` takes a third of the time of `%.0f`. A text also takes a third of the time of a number that Redis must format. Claims of
-- groups format many numbers.
local function turn_text(turn) return string.format(turn % 1 == 0 and '%d' or '%.0f', turn) end

local function turn_now() return count_in(redis.call('HGET', key_meta, 'turn')) end

-- Numbers that no line has. They rise, and start again at 1 after `linesMax`.
local function free_numbers(count)
  local numbers, tries = {}, 0
  while #numbers < count do
    local missing = count - #numbers
    local last, texts = add_to(key_meta, 'lines', missing), {}
    for i = 1, missing do texts[i] = line_text((last - missing + i) % rule_linesMax + 1) end
    for i, taken in ipairs(redis.call('HMGET', key_lineStates, unpack(texts))) do
      if not taken then numbers[#numbers + 1] = tonumber(texts[i]) end
    end
    tries = tries + 1
    if tries > 1000 then error({ err = 'ERR too many groups have waiting jobs' }) end
    if tries > 1 then add_to(key_meta, 'lines', 9972) end
  end
  return numbers
end

-- The numbers of these lines, by name. A missing line is created. It is ready, with the turn that the other lines have reached.
local function numbers_of(names)
  local numbers, found, new, made, ready = {}, {}, {}, {}, {}
  in_steps(names, function(...)
    for _, text in ipairs(redis.call('HMGET', key_lines, ...)) do found[#found + 1] = text end
  end)
  for i, name in ipairs(names) do
    numbers[name] = tonumber(found[i] or nil)
    if not numbers[name] then new[#new + 1] = name end
  end
  if #new == 0 then return numbers end
  local turn, states = turn_text(turn_now()), {}
  for i, number in ipairs(free_numbers(#new)) do
    local text = line_text(number)
    numbers[new[i]] = number
    made[#made + 1], made[#made + 2] = new[i], text
    states[#states + 1], states[#states + 2] = text, turn .. ' 0 ' .. new[i]
    ready[#ready + 1], ready[#ready + 2] = turn == '0' and '1' or turn, text
  end
  in_steps(states, function(...) redis.call('HSET', key_lineStates, ...) end)
  in_steps(made, function(...) redis.call('HSET', key_lines, ...) end)
  in_steps(ready, function(...) redis.call('ZADD', key_ready, ...) end)
  return numbers
end

-- The number of a priority in a line.
local function number_of_priority(name, number, priority)
  if priority == 0 then return number end
  local field = name .. '\n' .. string.format('%.0f', priority)
  local own = tonumber(redis.call('HGET', key_lines, field) or nil)
  if own then return own end
  own = free_numbers(1)[1]
  redis.call('HSET', key_lines, field, line_text(own))
  local text = redis.call('HGET', key_lineStates, line_text(number))
  local turn, list, rest = string.match(text, '^(%d+) ([%d,]+) (.*)$')
  local priorities = { priority }
  for each in string.gmatch(list, '%d+') do priorities[#priorities + 1] = tonumber(each) end
  table.sort(priorities)
  redis.call('HSET', key_lineStates, line_text(own), '', line_text(number), turn .. ' ' .. table.concat(priorities, ',') .. ' ' .. rest)
  return own
end

-- Puts jobs at the end of their lines. Takes lists of ids, names of lines, and priorities. In a new queue, ranks are left for `to_lines_again`.
local function to_lines(ids, names, priorities)
  local distinct, is_there = {}, {}
  for _, name in ipairs(names) do if not is_there[name] then is_there[name], distinct[#distinct + 1] = true, name end end
  local numbers = numbers_of(distinct)
  local last, scores, woken = add_to(key_meta, 'ranks', #ids), {}, {}
  if last <= rule_frontRanks then last = add_to(key_meta, 'ranks', rule_frontRanks) end
  for i, id in ipairs(ids) do
    local number = number_of_priority(names[i], numbers[names[i]], priorities[i])
    scores[2 * i - 1], scores[2 * i] = string.format('%d', number * rule_ranks + (last - #ids + i) % rule_ranks), id
  end
  in_steps(scores, function(...) redis.call('ZADD', key_grouped, ...) end)
  -- A line that was empty is neither in `ready` nor in `resting`.
  for i, name in ipairs(distinct) do woken[2 * i - 1], woken[2 * i] = '0', line_text(numbers[name]) end
  in_steps(woken, function(...) redis.call('ZADD', key_ready, 'NX', ...) end)
end

-- Turn, priorities and name of a line. Nil if it does not exist.
local function line_in(text)
  local turn, list, name = string.match(text or '', '^(%d+) ([%d,]+) (.*)$')
  return turn and { turn = tonumber(turn), priorities = list, name = name } or nil
end

-- The numbers under which a line has jobs, in the order of priorities. `line` is nil if another program has deleted its state.
local function numbers_in(line, number)
  if not line or line.priorities == '0' then return { number } end
  local fields, numbers = {}, { number }
  for each in string.gmatch(line.priorities, '%d+') do
    if each ~= '0' then fields[#fields + 1] = line.name .. '\n' .. each end
  end
  for _, found in ipairs(redis.call('HMGET', key_lines, unpack(fields))) do
    if found then numbers[#numbers + 1] = tonumber(found) end
  end
  return numbers
end

-- How many jobs wait in a line.
local function size_of_line(numbers)
  local size = 0
  for _, number in ipairs(numbers) do size = size + redis.call('ZCOUNT', key_grouped, range_of(number)) end
  return size
end

-- How many jobs of a line hold a slot. No fraction of a score is above 0.5.
local function running_of(text) return redis.call('ZCOUNT', key_slots, text, text .. '.5') end

-- How many dead jobs stop a line, if its rule lets them.
local function stopped_of(text) return redis.call('ZCOUNT', key_slots, line_text(text + rule_stoppedLines), '(' .. line_text(text + rule_stoppedLines + 1)) end

-- Whether one command shows that no job of these lines holds a slot. Lines with the same turn are ready in the order of their numbers,
-- so few others are between them. Counting each line takes a twentieth of a claim. The command fails if another program has put
-- anything else into `ready`.
local function run_none(texts)
  local low, high = texts[1], texts[1]
  for _, text in ipairs(texts) do if text < low then low = text elseif text > high then high = text end end
  return redis.pcall('ZCOUNT', key_slots, low, high .. '.5') == 0
end

-- Removes lines that are not in `ready`. No job waits in them, and none of their jobs holds a slot.
local function drop_lines(lines)
  local texts, fields = {}, {}
  for _, line in ipairs(lines) do
    for _, number in ipairs(line.numbers or { line.number }) do texts[#texts + 1] = line_text(number) end
    for each in string.gmatch(line.priorities, '%d+') do fields[#fields + 1] = each == '0' and line.name or line.name .. '\n' .. each end
  end
  in_steps(texts, function(...) redis.call('HDEL', key_lineStates, ...) redis.call('ZREM', key_resting, ...) end)
  in_steps(fields, function(...) redis.call('HDEL', key_lines, ...) end)
end

local function leave_ready(texts) in_steps(texts, function(...) redis.call('ZREM', key_ready, ...) end) end

-- Where a line stands in `ready` if groups are served by their running jobs: lines with the same number stand in the order of their turns.
-- `units`: the running jobs for the weight of the line, in steps of a turn.
local function place_text(units, turn)
  return string.format('%d', math.min(rule_placesMax, math.floor(units / rule_turnStep)) * rule_placeStep + turn % rule_placeStep)
end

-- Gives a place to the lines in `ready` that have 0. `place` gets the text of a line, its state and its turn.
local function give_places(limit, place)
  local texts, ready = redis.call('ZRANGE', key_ready, '0', '0', 'BYSCORE', 'LIMIT', 0, limit), {}
  if #texts == 0 then return end
  for i, state in ipairs(redis.call('HMGET', key_lineStates, unpack(texts))) do
    ready[2 * i - 1], ready[2 * i] = place(texts[i], state, tonumber(string.match(state or '', '^%d+') or 0)), texts[i]
  end
  in_steps(ready, function(...) redis.call('ZADD', key_ready, ...) end)
end

-- The line rests. At this time a claim looks at it again.
local function rest_until(at, text) redis.call('ZADD', key_resting, string.format('%.0f', math.ceil(at)), text) end

-- Moves lines whose time has come from `resting` to `ready`, at most `limit`.
local function wake_rested(now, limit)
  for _, text in ipairs(redis.call('ZRANGE', key_resting, '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, limit)) do
    redis.call('ZREM', key_resting, text)
    redis.call('ZADD', key_ready, 'NX', '0', text)
  end
end

-- The next claim looks at this line.
local function look_at_line(number)
  redis.call('ZREM', key_resting, line_text(number))
  redis.call('ZADD', key_ready, '0', line_text(number))
end

-- Writes the states of the lines that were served, and the turns of those that stay ready. Both lists have text and line alternately.
local function keep_turns(states, ready)
  in_steps(states, function(...) redis.call('HSET', key_lineStates, ...) end)
  in_steps(ready, function(...) redis.call('ZADD', key_ready, ...) end)
end

-- A new line begins at the turn of the lines that were served last.
local function advance_turn(turn) redis.call('HSET', key_meta, 'turn', turn_text(turn)) end
