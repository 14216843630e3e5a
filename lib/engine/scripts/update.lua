--@needs types, clock, body-lines, bodies, names, line, kept, ending, bell, event, workers, unique
-- Changes the data, due time or priority of a waiting or delayed job, or the data of a job that the caller's worker runs. The
-- caller computes the new line of options, and must have seen the current one.
check_bodies_of({ arg_id })
local now = clock()
check_types(key_grouped, key_meta, key_wait, key_suspects, key_prioritized, key_delayed, key_priorities, key_dead, key_completed, key_doorbell)
if arg_worker == '' then
  local workers = leased_workers()
  if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return { 'again' } end
end
local is_held = active_among({ arg_id })[arg_id]
local body = body_of(arg_id)
if not body or is_retired(arg_id, now) or (arg_worker ~= '' and not is_held) then return { 'not-found' } end
if arg_worker == '' and is_held then return { 'active' } end
if redis.call('ZSCORE', key_dead, arg_id) then return { 'dead' } end
local kept_until = redis.call('ZSCORE', key_completed, arg_id)
if kept_until then return { kept_state(kept_until, now) } end
local options = options_line_of(body)
if not options then return { 'unreadable' } end
if arg_name ~= '' and name_of(body) ~= arg_name then return { 'other-name' } end
if arg_hasOptions == 1 and options ~= arg_seen then return { 'changed' } end
if arg_seenData ~= '' and string.sub(body, -#arg_seenData - 1) ~= '\n' .. arg_seenData then return { 'changed' } end
if arg_due ~= '' and is_parked(arg_id) then return { 'parked' } end
local is_collector = string.find(options, '^{"items":') ~= nil
if is_collector then check_types(key_unique) end

local due = tonumber(arg_due)
if due and string.byte(arg_due) == 43 then due = now + due end
local is_later = due ~= nil and due > now
local was_due = redis.call('ZSCORE', key_delayed, arg_id)
local state, earliest = 'active', first_due()

-- Delays the job to its new time.
local function delay(priority)
  delay_until(string.format('%.0f', due), arg_id, priority, { own = {}, made = {} })
  if due < earliest then ring_sooner() end
end

if was_due then
  if arg_priority >= 0 then change_priority(arg_id, arg_priority) end
  if is_later then delay(0) end
  state = due and not is_later and 'waiting' or 'delayed'
  if state == 'waiting' then
    promote(arg_id)
    ring()
  end
elseif not is_held then
  local rank_now = redis.call('ZSCORE', key_prioritized, arg_id)
  local old = rank_now and math.floor(tonumber(rank_now) / rule_ranks)
    or redis.call('ZSCORE', key_grouped, arg_id) and priority_of(body) or 0
  local priority = arg_priority >= 0 and arg_priority or old
  state = is_later and 'delayed' or 'waiting'
  -- A suspect stays in `suspects`, where jobs run one at a time.
  local moves = is_later or (priority ~= old and not redis.call('LPOS', key_suspects, arg_id))
  if moves and not leave(arg_id, 1) then return { 'not-found' } end
  if is_later then
    delay(priority)
  elseif moves then
    to_tail_by(priority, arg_id)
    ring()
  end
end

-- A changed job with `aggregate` takes no more items: for that, its row needs a time.
if is_collector then
  local row = row_of(options_of(body).unique or '')
  if row.holder == arg_id then put_row(row.digest, arg_id, 0, row.since, row.next) end
end
put_body(arg_id, with_lines(body, arg_hasOptions == 1 and arg_options or nil, arg_data ~= '' and arg_data or nil))
local events = { count = 0 }
say(events, 'updated', 1, arg_id, 'name', name_of(body))
write_events(events, now)
return { 'updated', state, redis.call('ZSCORE', key_delayed, arg_id) or '' }
