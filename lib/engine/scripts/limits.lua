--@needs clock, slots, lines, limits, breakers, shares
-- The current limits of a queue and of its names, or of one page of its groups (those with a line, those with a rule, or those that a dead job stops), or of one group, or the shared limits.
-- For a queue also the number of groups that are ready, rest, or are stopped. The limits of single groups are between those of names, so there may be
-- several pages; the numbers of all pages are added up.
local now = clock()
local defaults = limits_in(redis.call('HGET', key_limits, 'g'))
local found = {}

local function tell(field, number, base)
  local text = redis.call('HGET', key_limits, field)
  local rule, state = limits_in(text, base), redis.call('HGET', key_limitStates, field)
  local blocked, _, mark, till = limit_state(state)
  local left, next_in = rate_room(rule, state, now, 9007199254740991)
  local waiting, running, holder, stops, users = 0, 0, nil, false, ''
  if number then
    local line = line_in(redis.call('HGET', key_lineStates, line_text(number)))
    waiting = line and size_of_line(numbers_in(line, number)) or 0
    running = running_of(line_text(number))
    holder = rule.order == 'strict' and redis.call('ZRANGE', key_slots, line_text(number), line_text(number) .. '.5', 'BYSCORE', 'LIMIT', 0, 1)[1]
    if defaults.onDead == 'block' and running == 0 then
      local at = number + rule_stoppedLines
      holder = redis.call('ZRANGE', key_slots, line_text(at), line_text(at + 1), 'BYSCORE', 'LIMIT', 0, 1)[1]
      stops = holder ~= nil
    end
  elseif field == 'q' then
    running = count_slots()
  elseif string.sub(field, 1, 2) == 's:' then
    users, running = users_of(string.sub(field, 3), now)
  end
  found[#found + 1] = { field, text or '', cjson.encode(rule), math.max(0, math.ceil(blocked - now)),
    rule.rate and string.format('%.0f', left) or '', left < 1 and math.ceil(next_in) or 0, waiting, running,
    rule.breaker and (mark == '!' and open_until(rule.breaker, till, now) > now and 'open' or mark ~= '' and 'half-open' or 'closed') or '', holder or '', stops and 1 or 0, users,
    retry_delay(field, rule.retryBudget, now) }
end

local cursor, groups = '0', { ready = 0, resting = 0, stopped = 0 }

-- One page of the groups that a dead job stops. Dead jobs of one group have the same score.
local function tell_stopped()
  if defaults.onDead ~= 'block' then return end
  local from, last = tonumber(arg_cursor), nil
  local slots = redis.call('ZRANGE', key_slots, rule_stoppedLines, '+inf', 'BYSCORE', 'LIMIT', from, arg_limit, 'WITHSCORES')
  if #slots == 2 * arg_limit then cursor = string.format('%d', from + arg_limit) end
  for i = 2, #slots, 2 do
    local number = math.floor(slots[i] - rule_stoppedLines)
    local text = line_text(number)
    local line = number ~= last and line_in(redis.call('HGET', key_lineStates, text))
    -- A dead job that was retried, and another one of its group.
    local runs = redis.call('ZCOUNT', key_slots, text, text .. '.5') > 0
    if line and not runs then tell(line.name, number, defaults) end
    last = number
  end
end

-- The line is not one of a group. If a job has arrived while its rate is remembered, it is in both.
local function leave_out(number)
  if not number then return end
  if redis.call('ZSCORE', key_ready, line_text(number)) then groups.ready = groups.ready - 1 end
  if redis.call('ZSCORE', key_resting, line_text(number)) then groups.resting = groups.resting - 1 end
end

if arg_kind == 'shared' then
  local page = redis.call('HSCAN', key_limits, '0', 'MATCH', 's:*', 'COUNT', 10000)
  for i = 1, #page[2], 2 do tell(page[2][i]) end
elseif arg_kind == 'group' then
  tell(arg_field, tonumber(redis.call('HGET', key_lines, arg_field) or nil), defaults)
elseif arg_kind == 'stopped' then
  tell_stopped()
elseif arg_kind == 'ruled' then
  local page = redis.call('HSCAN', key_limits, arg_cursor, 'MATCH', 'g:*', 'COUNT', arg_limit)
  cursor = page[1]
  for i = 1, #page[2], 2 do tell(page[2][i], tonumber(redis.call('HGET', key_lines, page[2][i]) or nil), defaults) end
elseif arg_kind == 'groups' then
  local page = redis.call('HSCAN', key_lines, arg_cursor, 'MATCH', 'g:*', 'COUNT', arg_limit)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    if not string.find(page[2][i], '\n', 1, true) then tell(page[2][i], tonumber(page[2][i + 1]), defaults) end
  end
else
  if arg_cursor == '0' then
    tell('q')
    if redis.call('HEXISTS', key_limits, 'g') == 1 then tell('g') end
    -- All lines but those of names and the one of all other jobs are groups. This is exact, and takes the same time for any number of groups.
    groups = { ready = redis.call('ZCARD', key_ready), resting = redis.call('ZCARD', key_resting), stopped = 0 }
    if defaults.onDead == 'block' then groups.stopped = redis.call('ZCOUNT', key_slots, rule_stoppedLines, '+inf') end
    leave_out(tonumber(redis.call('HGET', key_lines, '') or nil))
  end
  local page = redis.call('HSCAN', key_limits, arg_cursor, 'MATCH', 'n:*', 'COUNT', 10000)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    local number = tonumber(redis.call('HGET', key_lines, page[2][i]) or nil)
    tell(page[2][i], number)
    leave_out(number)
  end
end
return { cursor, found, groups.ready, groups.resting, groups.stopped }
