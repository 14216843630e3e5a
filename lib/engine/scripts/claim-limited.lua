--@needs types, clock, count, bodies, body-lines, names, tally, gate, hold, line, slots, lines, front, limits, ending, claimed, bell, event
-- The claim of a queue with limits or groups. The worker calls it after the exchange, which then only settles. This script claims
-- as many jobs as may start. Its call numbers are its own fields in the record of the worker, so a repeated call gets the same
-- answer. It first chooses jobs, then reads their bodies, and only then moves them.
local now = clock()
local suffix = arg_pipelined == 1 and '2' or ''
local record = redis.call('HMGET', key_worker, 'seq', 'limitedSeq' .. suffix, 'limited' .. suffix)
if not record[1] then return { 'unknown-worker', now } end
local seq, last_seq = tonumber(arg_seq), count_in(record[2])
if seq < last_seq then return { 'stale', now } end

-- `is_held_back`: above 0 if limits keep waiting jobs from starting.
local function answer(ids, bodies, supply, failed, stalled, is_held_back)
  return { 'claimed', now, supply, held(), table.concat(ids, '\n'), bodies_in(bodies), failed, stalled, is_held_back or 0 }
end

-- At most as many lines are examined at once, so that each gives one job before any gives a second one.
local want = math.min(arg_want, rule_sortMax)
if last_seq == seq then
  local ids, bodies, count = {}, {}, 0
  for id in string.gmatch(record[3] or '', '[^\n]+') do
    count = count + 1
    local body = redis.call('SISMEMBER', key_active, id) == 1 and body_of(id)
    if body then ids[#ids + 1], bodies[#bodies + 1] = id, body end
  end
  return answer(ids, bodies, count < want and rule_supplyEmpty or rule_supplyMore, counts_of(ids))
end
local paused, limited = unpack(redis.call('HMGET', key_meta, 'paused', 'limited'))
if paused then return answer({}, {}, rule_supplyPaused, {}, {}) end
-- Nothing limits the queue any more, so the exchange claims.
if not limited then return { 'plain', now } end

check_types(key_wait, key_suspects, key_prioritized, key_limits, key_limitStates, key_lines, key_lineStates, key_grouped, key_ready,
  key_resting, key_slots, key_workers, key_dead, key_failures, key_doorbell, key_attempts, key_stalls, key_active, key_stats)
local has_lines, has_blocks, has_own = string.find(limited, '[agn]') ~= nil, has_blocks_in(limited, now), string.find(limited, 'o', 1, true)
-- `is_limited`: for each name that was looked up, whether it has limits. `''` is the line of all other jobs.
local texts, has_names, is_limited = redis.call('HMGET', key_limits, 'q', 'g'), string.find(limited, 'n', 1, true), { [''] = false }
local queue, defaults, state_of_queue = limits_in(texts[1]), limits_in(texts[2]), redis.call('HGET', key_limitStates, 'q')
-- Whether groups are served by their running jobs. Then the jobs without a group count as one group.
local by_running, others = defaults.fairness == 'in-flight', { fairness = defaults.fairness }
-- Whether dead jobs stop some groups.
local has_stopped = defaults.onDead == 'block' and redis.call('ZCOUNT', key_slots, rule_stoppedLines, '+inf') > 0
-- How many jobs may start by the rate of the queue.
local tokens, opens_in, cost_left = rate_room(queue, state_of_queue, now, math.huge)

local function line_rule(name)
  local kind = string.sub(name, 1, 2)
  if kind == 'g:' then return limits_in(has_own and redis.call('HGET', key_limits, name), defaults) end
  return kind == 'n:' and limits_in(redis.call('HGET', key_limits, name), others) or others
end

-- The name of the line of a job: its group, or its job name if that name has limits. All other jobs share the line ''.
local function line_of(body)
  local group = body and group_of(body)
  if group then return 'g:' .. group end
  local name = has_names and 'n:' .. name_of(body) or ''
  if is_limited[name] == nil then is_limited[name] = redis.call('HEXISTS', key_limits, name) == 1 end
  return is_limited[name] and name or ''
end

-- Whether the job of a slot with this score must wait for its turn although it has a slot: its group is paused or held, or has a rate,
-- against which each start counts. A dead job that was retried has no slot that counts.
local function must_wait(score)
  if score + 0 > rule_stoppedLines then return true end
  local name = string.match(redis.call('HGET', key_lineStates, line_text(math.floor(score))) or '', '^%d+ [%d,]+ (.*)$') or ''
  local rule = line_rule(name)
  return rule.paused or rule.rate or has_blocks and rate_room(rule, redis.call('HGET', key_limitStates, name), now, 1) < 1
end

-- In a queue with lines, new jobs arrive in `wait` and `prioritized`. This moves them to their lines. Jobs that have a slot already
-- need no turn: they stay at the head of `wait`. But if their group is paused or held, or has a rate, they release the slot and go to the
-- front of the group. Jobs whose worker was lost or gave them back go to the front of their lines, in one step: the second step would put
-- its jobs before those of the first. Returns how many stay.
local function sort_arrivals()
  check_bodies()
  local ids, ranked = take_arrivals(math.max(rule_sortMax, math.min(redis.call('HLEN', key_stalls), rule_returnedMax)))
  local plain = #ids
  for i = 1, #ranked, 2 do ids[#ids + 1] = ranked[i] end
  if #ids == 0 then return 0 end
  local scores, first = redis.call('ZMSCORE', key_slots, unpack(ids)), {}
  local stay, moved, names, priorities, bytes, seen = {}, {}, {}, {}, 0, 0
  while seen < #ids and bytes < arg_maxBytes do
    seen = seen + 1
    local id = ids[seen]
    if scores[seen] and not must_wait(scores[seen]) then stay[#stay + 1] = id else
      if scores[seen] then first[#first + 1], first[id] = id, true end
      local body = body_of(id)
      bytes, moved[#moved + 1], names[#names + 1] = bytes + (body and #body or 0), id, line_of(body)
      priorities[#priorities + 1] = seen > plain and not first[id] and math.floor(tonumber(ranked[2 * (seen - plain)]) / rule_ranks) or 0
    end
  end
  for i = #ids, seen + 1, -1 do if i > plain then put_ranked(ids[i], ranked[2 * (i - plain)]) else push_to_head({ ids[i] }) end end
  push_to_head(stay)
  if #first > 0 then release_slots(first, 'gone') end
  if #moved > 0 then to_lines_again(moved, names, priorities, first) end
  return #stay
end

-- The chosen ids in the order in which they start. For each also the key that it is in, and the line that it counts for, if any.
local ids, keys, counts_for, lines, line_by, skipped, has_rounds = {}, {}, {}, {}, {}, {}, false

local function choose(id, key, line) ids[#ids + 1], keys[#ids + 1], counts_for[#ids + 1] = id, key, line or false end

-- The slots are counted after this, because it may free some.
local own = has_lines and redis.call('EXISTS', key_wait, key_prioritized) > 0 and sort_arrivals() or 0
local reached = has_lines and math.max(turn_now(), 1)
-- Whether a line may stay in `ready` while it waits for a slot. If many lines are ready, it has its slot when its turn comes, and the
-- end of its job need not write `ready` again. A claim that finds no slot takes the line out.
local may_stay = has_lines and redis.call('ZCARD', key_ready) > 4 * want

-- Reads a line. The caller may have read its state already, and may know that none of its jobs runs. Nil if the line does not exist.
-- Its turn is the one in its state, but never below `reached`. The same applies to its turn in `ready`. If lines are served
-- by their running jobs, it begins after these.
local function load_line(text, state, runs_none)
  if line_by[text] then return line_by[text] end
  local at, priorities, name = string.match(state or redis.call('HGET', key_lineStates, text) or '', '^(%d+) ([%d,]+) (.*)$')
  if not at then return nil end
  -- Arithmetic reads a number from a text in half the time of `tonumber`.
  local number, rule = text + 0, line_rule(name)
  local most = most_running(rule)
  local running, step = most < math.huge and not runs_none and running_of(text) or 0, rule_turnStep / (rule.weight or 1)
  -- One constructor with all fields: a table that grows field by field takes several times as long, and so does one with more than 16.
  local line = { number = number, text = text, name = name, priorities = priorities, rule = rule, most = most, running = running,
    room = rule.paused and 0 or math.max(0, most - running), tokens = math.huge, began = by_running and running * step or math.max(at, reached), step = step,
    got = 0, used = 0, count = 0, is_empty = false, has_more = false }
  if priorities ~= '0' then line.numbers = numbers_in(line, number) end
  if has_stopped and stopped_of(text) > 0 then line.most, line.room = 0, 0 end
  if rule.rate or has_blocks then
    line.state = redis.call('HGET', key_limitStates, name)
    line.tokens, line.next_in, line.cost_left = rate_room(rule, line.state, now, math.huge)
    line.room = math.min(line.room, line.tokens)
  end
  lines[#lines + 1], line_by[text] = line, line
  return line
end

-- Handles a line that has left `ready` because no more of its jobs may start. The line waits until its rate allows a start, a slot
-- is free or a job arrives. Returns true if the line waits for nothing, so that it can be removed.
local function put_aside(line)
  if line.tokens < 1 then return rest_until(now + line.next_in, line.text) end
  local running = line.most < math.huge and line.running + line.count or running_of(line.text)
  -- The number of the line is used again only when no dead job has it.
  if running > 0 or stopped_of(line.text) > 0 or not (line.is_empty and line.got == 0) and size_of_line(line.numbers or { line.number }) > 0 then return false end
  local over_at = state_over_at(line.rule, line.state, now)
  return over_at <= now or over_at < math.huge and rest_until(over_at, line.text)
end

-- Goes to the next job of a priority. Its place in the line is the time when its wait began, plus the lead of its priority.
local function move_on(head)
  head.at, head.id = head.at + 1, head.ids[head.at + 1]
  head.place = head.id and waits_since(body_of(head.id) or '', now) + head.lead or math.huge
  return head
end

-- With aging, the next job is the one with the lowest place among all priorities.
local function take_aged(line, count)
  if not line.heads then
    local next_priority = string.gmatch(line.priorities, '%d+')
    line.heads = {}
    for i, number in ipairs(line.numbers) do
      local low, high = range_of(number)
      line.heads[i] = move_on({ ids = redis.call('ZRANGE', key_grouped, low, high, 'BYSCORE', 'LIMIT', 0, want), at = 0,
        lead = tonumber(next_priority() or 0) * queue.aging.every / queue.aging.by })
    end
  end
  for _ = 1, count do
    local first = line.heads[1]
    for _, head in ipairs(line.heads) do if head.place < first.place then first = head end end
    if not first.id then return end
    choose(first.id, key_grouped, line)
    move_on(first)
  end
end

-- Chooses up to `count` jobs of one priority of a line, after the first `skip`. It asks for one more job, to know whether any is left:
-- counting the line takes longer. For a line that stays in `ready` this does not matter.
local function take_some(line, number, skip, count)
  local low, high = range_of(number)
  local limit = may_stay and line.most < math.huge and count or count + 1
  local some = redis.call('ZRANGE', key_grouped, low, high, 'BYSCORE', 'LIMIT', skip == 0 and '0' or string.format('%d', skip),
    limit == 1 and '1' or string.format('%d', limit))
  for i = 1, math.min(count, #some) do choose(some[i], key_grouped, line) end
  line.has_more = #some > count
end

-- Chooses up to `count` jobs of a line, in the order of priorities. Returns how many.
local function take_of(line, count)
  local before, skip = #ids, line.got
  if not line.numbers then take_some(line, line.number, skip, count)
  elseif queue.aging then take_aged(line, count)
  else
    for _, number in ipairs(line.numbers) do
      local size, left = redis.call('ZCOUNT', key_grouped, range_of(number)), count - #ids + before
      if left > 0 and skip < size then take_some(line, number, skip, left) end
      skip = math.max(0, skip - size)
    end
  end
  local taken = #ids - before
  line.got, line.room = line.got + taken, line.room - taken
  has_rounds = has_rounds or line.got > 1
  return taken
end

-- The turn of a line after `count` jobs.
local function turn_of(line, count) return line.began + count * line.step end

-- Chooses jobs in rounds. A line that is ahead of the first line by more than one round skips this round. If a handler takes batches
-- of one group, each line gives that many jobs in a round. If lines are served by their running jobs, each gives only as many as it lacks at the end
-- of the round.
local function take_turns(alive, left)
  while left > 0 and #alive > 0 do
    local weights, first, still = 0, math.huge, {}
    for _, line in ipairs(alive) do weights, first = weights + rule_turnStep / line.step, math.min(first, turn_of(line, line.got)) end
    local round = (arg_perTurn > 1 and arg_perTurn or math.max(1, math.floor(left / weights))) * rule_turnStep
    for _, line in ipairs(alive) do
      local ahead = turn_of(line, line.got) - first
      if ahead >= round then still[#still + 1] = line elseif left > 0 then
        local given = by_running and arg_perTurn == 1 and round - ahead or round
        local count = line.room == 1 and 1 or math.min(left, line.room, math.max(1, math.floor(given / line.step + 0.5)))
        local taken = count >= 1 and take_of(line, count) or 0
        line.is_empty, left = taken < count, left - taken
        if taken == count and line.room >= 1 then still[#still + 1] = line end
      end
    end
    alive = still
  end
  return left
end

-- Returns whether it stopped before the last lines, because many lines had no job that may start.
local function choose_of_lines(most)
  wake_rested(now, rule_sortMax)
  give_places(rule_claimMax, function(text, state, turn)
    local line = by_running and load_line(text, state)
    return line and place_text(line.began, math.max(turn, 1)) or turn_text(math.max(turn, reached))
  end)
  local left, behind = most, 0
  while left > 0 and behind < rule_claimMax do
    local alive, names = {}, redis.call('ZRANGE', key_ready, behind, behind + math.min(left, rule_sortMax) - 1)
    if #names == 0 then return false end
    behind = behind + #names
    local states, runs_none = redis.call('HMGET', key_lineStates, unpack(names)), run_none(names)
    for i, text in ipairs(names) do
      local line = load_line(text, states[i], runs_none)
      if not line then
        leave_ready({ text })
        behind = behind - 1
      elseif line.room >= 1 then alive[#alive + 1] = line end
    end
    left = take_turns(alive, left)
  end
  return left > 0 and redis.call('ZCARD', key_ready) > behind
end

-- Orders the chosen jobs after `from` by rounds: claimed jobs may wait for a slot, and the second job of a line must not start
-- before the first one of another.
local function order_by_rounds(from)
  local at, rounds, nth = {}, {}, {}
  for i = from + 1, #ids do
    local line = counts_for[i]
    local round = math.floor(turn_of(line, nth[line] or 0) / rule_turnStep)
    if not at[round] then at[round], rounds[#rounds + 1] = {}, round end
    nth[line], at[round][#at[round] + 1] = (nth[line] or 0) + 1, { ids[i], line }
  end
  table.sort(rounds)
  for _, round in ipairs(rounds) do
    for _, chosen in ipairs(at[round]) do from, ids[from + 1], counts_for[from + 1] = from + 1, chosen[1], chosen[2] end
  end
end

-- How many jobs may start by the concurrency of the queue. A job that has a slot already does not count.
local function slots_left() return most_running(queue) - (queue.concurrency and count_slots() or 0) end
local free = slots_left()
for _, suspect in ipairs(arg_maySuspect == 1 and tokens >= 1 and redis.call('LRANGE', key_suspects, 0, rule_sortMax - 1) or {}) do
  local slot = redis.call('ZSCORE', key_slots, suspect)
  local its = slot and has_lines and load_line(line_text(math.floor(slot)))
  if slot and (not its or its.tokens >= 1 and not its.rule.paused) then
    choose(suspect, key_suspects, its)
    if its then its.running = its.running - 1 end
  elseif not slot and free >= 1 then
    local name = has_lines and line_of(body_of(suspect))
    local line = name and load_line(line_text(numbers_of({ name })[name]))
    if not line or line.room >= 1 then
      choose(suspect, key_suspects, line)
      if line then line.room = line.room - 1 end
      free = free - 1
    end
  end
  -- The suspects of paused or full groups do not hold back the others.
  if #ids > 0 then break else skipped[#skipped + 1] = suspect end
end
local most, has_unseen = math.min(want, tokens), false
if has_lines then
  local count = math.min(own, most - #ids)
  for _, id in ipairs(count > 0 and redis.call('LRANGE', key_wait, 0, count - 1) or {}) do choose(id, key_wait) end
  local before = #ids
  has_unseen = choose_of_lines(math.min(most - #ids, free))
  if has_rounds and arg_perTurn == 1 then order_by_rounds(before) end
else
  most = math.min(most, #ids + free)
  for _, id in ipairs(#ids < most and redis.call('LRANGE', key_wait, 0, most - #ids - 1) or {}) do choose(id, key_wait) end
  for _, id in ipairs(#ids < most and redis.call('ZRANGE', key_prioritized, 0, most - #ids - 1) or {}) do choose(id, key_prioritized) end
end

local bodies, name = bodies_and_name(ids, arg_maxBytes)
if bodies.err then return bodies end
-- `is_costly`: the next job costs more than the rate of the queue has left.
local is_cut, used, has_rate, is_costly = #bodies < #ids, 0, string.find(limited, 'r', 1, true), false

-- `late`: jobs that came to the line of all other jobs before their name had limits. They go to the line of their name.
local events, broken, whole, whole_bodies, slots, late, late_names, late_priorities = { count = 0 }, {}, {}, {}, {}, {}, {}, {}
local leaving_from = { [key_grouped] = {}, [key_prioritized] = {}, [key_suspects] = {}, [key_wait] = {} }
for i = 1, math.min(#ids, #bodies) do
  local id, body, key, line = ids[i], bodies[i], keys[i], counts_for[i]
  if used >= tokens then break end
  local its = has_names and body and line and line.name == '' and line_of(body) or ''
  if its ~= '' then
    late[#late + 1], late_names[#late + 1], late_priorities[#late + 1], is_cut = id, its, priority_of(body), true
  elseif not line or line.used < line.tokens then
    local leaving, cost = leaving_from[key], has_rate and body and (option_of(body, 'cost', 'number') or 1)
    is_costly = cost and not is_affordable(queue, cost, used, cost_left)
    if is_costly then break end
    if cost and line and not is_affordable(line.rule, cost, line.used, line.cost_left) then
      -- The later jobs of the line wait too.
      line.tokens, line.is_costly = line.used, true
    elseif body then
      leaving[#leaving + 1], whole[#whole + 1], whole_bodies[#whole + 1] = id, id, body
      -- The probe jobs of a breaker are counted, whatever they cost.
      used = used + (queue.rate and cost or 1)
      if line then line.count, line.used = line.count + 1, line.used + (line.rule.rate and cost or 1) end
      local slot = line and line.most < math.huge and line.text .. keeps_slot(line.rule) or queue.concurrency and '0'
      if slot then slots[#slots + 1], slots[#slots + 2] = slot, id end
    else leaving[#leaving + 1], broken[#broken + 1] = id, id end
  end
end
for key, some in pairs(leaving_from) do
  if #some > 0 and key == key_suspects then leave_head(key, #skipped + 1, skipped) end
  if #some > 0 and key ~= key_suspects then if key == key_wait then leave_head(key, #some, {}) else leave_ranked(key, some) end end
end
if #slots > 0 then take_slots(slots) end

-- `turn_texts`: most lines get the same turn, and formatting takes long.
local turn, last_turn, states, kept, aside, leaving, over, names, turn_texts = reached, reached, {}, {}, {}, {}, {}, {}, {}
for _, line in ipairs(lines) do
  local after = by_running and reached + 1 or turn_of(line, line.count)
  local next_turn = line.count > 0 and (turn_texts[after] or turn_text(after))
  if next_turn then
    turn_texts[after] = next_turn
    -- A suspect may start before the turn of its line. The queue's turn stays as it is.
    if line.got > 0 then turn, last_turn = math.max(turn, by_running and after or line.began), math.max(last_turn, after) end
    local at = #states
    states[at + 1], states[at + 2] = line.text, next_turn .. ' ' .. line.priorities .. ' ' .. line.name
    if line.state ~= nil then
      line.next_in, line.state = charge_rate(line.name, line.rule, line.state, now, line.used)
      line.tokens = line.next_in > 0 and 0 or 1
    end
  end
  if line.is_costly then line.tokens, line.next_in = 0, select(2, rate_room(line.rule, line.state, now, 1)) end
  local stays = may_stay and next_turn and line.most < math.huge and line.tokens >= 1 and not line.is_empty and not line.rule.paused
  -- Chosen jobs that do not start now are still in the line.
  local room = stays and 1 or line.rule.paused and 0 or math.min(line.most - line.running - line.count, line.tokens)
  if room < 1 or not stays and not line.has_more and (line.count + line.got > 0 or line.is_empty) and size_of_line(line.numbers or { line.number }) == 0 then
    aside[#aside + 1], leaving[#leaving + 1] = line, line.text
  elseif next_turn then
    kept[#kept + 1], kept[#kept + 2] = by_running and place_text((line.running + line.count) * line.step, after) or next_turn, line.text
  end
end
keep_turns(states, kept)
leave_ready(leaving)
for _, line in ipairs(aside) do if put_aside(line) then over[#over + 1], names[#names + 1] = line, line.name end end
drop_lines(over)
if #over > 0 then redis.call('HDEL', key_limitStates, unpack(names)) end
-- An ended hold or a removed rule has left this.
for i, rule in ipairs(#over > 0 and redis.call('HMGET', key_limits, unpack(names)) or {}) do if rule == '{}' then redis.call('HDEL', key_limits, names[i]) end end
-- A line that had several turns at once, because no other line was ready, owes none of them to lines that come later.
if has_rounds and not by_running then turn = math.max(turn, tonumber(redis.call('ZRANGE', key_ready, 0, 0, 'WITHSCORES')[2] or last_turn)) end
if turn ~= reached then advance_turn(turn) end
if #late > 0 then to_lines_again(late, late_names, late_priorities, {}) end
if used > 0 then opens_in, state_of_queue = charge_rate('q', queue, state_of_queue, now, used) tokens = opens_in > 0 and 0 or 1 end
if is_costly then tokens, opens_in = 0, select(2, rate_room(queue, state_of_queue, now, 1)) end
-- Last, because it wakes lines whose slot such a job kept.
for i, id in ipairs(broken) do broken[i] = finish_corrupt(id, '', rule_corruptRecord, now) end
if #broken > 0 then tally('dead:', #broken) say(events, 'dead', #broken, table.concat(broken, '\n'), 'reason', 'corrupt') end

local claimed_ids, failed, stalled = table.concat(whole, '\n'), counts_of(whole)
if #whole > 0 then
  hold(whole) lease_until(now + arg_leaseMs, arg_worker)
  if arg_maxEvents > 0 then say_active(events, whole, claimed_ids, name, whole_bodies, failed) end
end
redis.call('HSET', key_worker, 'limitedSeq' .. suffix, arg_seq, 'limited' .. suffix, claimed_ids, 'lease', arg_leaseMs)
redis.call('PEXPIRE', key_worker, rule_workerRecordMs)
write_events(events, now)

-- The ring that woke this worker may have been the only one. If more jobs may start, another worker is woken.
if (is_cut or #whole >= want or #broken > 0) and tokens >= 1 and slots_left() >= 1 and redis.call('EXISTS', key_wait, key_prioritized, key_ready) > 0 then ring() end
local supply, is_held_back, first = is_cut and rule_supplyCut or rule_supplyMore, 0, nil
if not is_cut and #whole < want then
  is_held_back, first = redis.call('EXISTS', key_wait, key_prioritized, key_grouped), redis.call('ZRANGE', key_resting, 0, 0, 'WITHSCORES')[2]
  local opens = has_unseen and 0 or tokens < 1 and opens_in or first and tonumber(first) - now
  supply = opens and math.max(1, math.ceil(opens)) or rule_supplyEmpty
  -- Nothing limits this queue any more. From now on the exchange claims its jobs.
  if #whole == 0 and tokens >= 1 and redis.call('EXISTS', key_limits, key_grouped, string.find(limited, 'g', 1, true) and key_delayed
    or key_limits, key_slots, key_resting, key_lines) == 0 then
    redis.call('DEL', key_limitStates)
    redis.call('HDEL', key_meta, 'limited')
  end
end
return answer(whole, whole_bodies, supply, failed, stalled, is_held_back)
