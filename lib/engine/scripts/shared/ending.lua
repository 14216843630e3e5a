--@needs steps, count, bodies, body-lines, kept, names, traces, tally, event, unreadable, logs, slots
-- Every end of a job. A job that has ended is deleted, or kept in `completed` or `dead`.

local function finish_completed(ids, traces)
  in_steps(ids, drop_bodies)
  forget_traces(ids, traces)
end

-- Keeps completed jobs. `until_when` has times and ids alternately, `results` has ids and records.
local function finish_kept(ids, until_when, results, traces)
  redis.call('ZADD', key_completed, unpack(until_when))
  redis.call('HSET', key_results, unpack(results))
  forget_runs(ids, traces)
end

-- Moves a job to `dead`.
local function finish_dead(id, record, now)
  redis.call('ZADD', key_dead, now, id)
  note_failure(id, record, now)
end

-- Ends a job that can never run because it was written by hand: it has no body, or an id that no client can name. Returns the id
-- under which it is kept.
local function finish_corrupt(id, body, record, now)
  local name = readable_id(id)
  put_body(name, body)
  finish_dead(name, record, now)
  release_slots({ id }, name == id and 'dead' or 'gone')
  return name
end

-- Keeps a cancelled job: its body, last failure, progress and log, and a record with the reason.
local function keep_cancelled(id, attempt, reason, keep, traces, now)
  redis.call('ZADD', key_completed, string.format('%.0f', rule_cancelledFrom + now + keep), id)
  redis.call('HSET', key_results, id, now .. '\n{"attempt":' .. attempt .. ',"cancelled":' .. cjson.encode(reason) .. '}')
  for _, key in ipairs(traces) do
    if key ~= key_failures and key ~= key_progress and key ~= key_logs then redis.call('HDEL', key, id) end
  end
end

-- Ends cancelled jobs. Unless they are kept, only the time and the reason stay, for a minute, for callers that missed the event.
-- Writing them must not fail the move, hence pcall. `begun` is 1 if the jobs ran: then the last attempt is one more than the
-- failed ones.
local function finish_cancelled(cancelled, begun, events, traces, now)
  local ids, reasons = cancelled.ids, cancelled.reasons
  if #ids == 0 then return end
  local attempts, records = {}, {}
  in_steps(ids, function(...)
    for _, failed in ipairs(redis.call('HMGET', key_attempts, ...)) do attempts[#attempts + 1] = count_in(failed) + begun end
  end)
  say(events, 'cancelled', #ids, table.concat(ids, '\n'), 'name', names_of(ids), 'attempt', table.concat(attempts, '\n'),
    'reason', table.concat(reasons, '\n'))
  local gone = {}
  for i, id in ipairs(ids) do
    local keep = cancelled.keeps[i]
    if keep > 0 then keep_cancelled(id, attempts[i], reasons[i], keep, traces, now) else gone[#gone + 1] = id end
  end
  free_slots(ids, traces, 'gone')
  if #gone > 0 then finish_completed(gone, traces) end
  tally('cancelled', #ids)
  for i = 1, math.min(#ids, rule_cancelledMax) do
    records[#records + 1], records[#records + 2] = ids[i], now .. '\n' .. reasons[i]
  end
  if type(redis.pcall('HSET', key_cancelled, unpack(records))) == 'number' then
    redis.call('PEXPIRE', key_cancelled, rule_cancelledMs)
    local over = redis.call('HLEN', key_cancelled) - rule_cancelledMax
    if over > 0 then redis.call('HDEL', key_cancelled, unpack(redis.call('HRANDFIELD', key_cancelled, over))) end
  end
end

local function say_removed(events, ids, names, reason)
  say(events, 'removed', #ids, table.concat(ids, '\n'), 'name', table.concat(names, '\n'), 'reason', reason)
end

-- Deletes removed jobs and writes an event with the reason. They have already left their places.
local function finish_removed(ids, names, reason, events, traces)
  say_removed(events, ids, names, reason)
  finish_completed(ids, traces)
end

-- Takes kept jobs out of their places, to be removed or to run again. Returns how many there were.
local function leave_dead(ids)
  local left = 0
  in_steps(ids, function(...) left = left + redis.call('ZREM', key_dead, ...) end)
  return left
end

local function leave_completed(ids)
  local left = 0
  in_steps(ids, function(...)
    left = left + redis.call('ZREM', key_completed, ...)
    redis.call('HDEL', key_results, ...)
  end)
  return left
end

-- Whether the retention of a kept job is over. Then it counts as gone, even if it is not deleted yet.
local function is_retired(id, now)
  local kept_until = redis.call('ZSCORE', key_completed, id)
  return kept_until and not kept_state(kept_until, now)
end

-- Deletes the records of kept jobs. The caller drops or replaces their bodies.
local function forget_kept(ids)
  leave_completed(ids)
  drop_logs(ids)
  for _, key in ipairs({ key_failures, key_progress }) do redis.call('HDEL', key, unpack(ids)) end
end

local function retire(id, now)
  if not is_retired(id, now) then return false end
  forget_kept({ id })
  return true
end

-- Whether a call waits for the end of this completed job, and it ended so recently that the call may not have read its result.
-- `body` is the body of the job.
local function is_awaited(id, body, now)
  local ended_at = options_of(body).awaited and tonumber(string.match(redis.call('HGET', key_results, id) or '', '^(%d+)\n'))
  return ended_at and now - ended_at < rule_awaitedMs
end

-- Deletes the records of ended jobs whose ids a new job takes. The new job replaces the body.
local function forget_ended(ids)
  leave_dead(ids)
  forget_kept(ids)
  for _, key in ipairs({ key_attempts, key_stalls }) do redis.call('HDEL', key, unpack(ids)) end
end

local function expired(key, low, high) return redis.call('ZRANGE', key, low, high, 'BYSCORE', 'LIMIT', 0, rule_trimStep) end

-- The first of the jobs that are kept too long. If there are none, the first of too many.
local function beyond(key, over, most)
  local count = #over > 0 and 0 or math.min(redis.call('ZCARD', key) - most, rule_trimStep)
  return with_few_lines(count > 0 and redis.call('ZRANGE', key, 0, count - 1) or over)
end

local function drop_kept(over)
  if #over == 0 then return 0 end
  forget_kept(over)
  drop_bodies(unpack(over))
  return #over
end

local function trim_completed(now)
  return drop_kept(beyond(key_completed, expired(key_completed, '-inf', now), arg_completedMax))
end

-- Not part of every settlement, because few jobs are cancelled and kept.
local function trim_cancelled(now)
  local over = expired(key_completed, string.format('%.0f', rule_cancelledFrom), string.format('%.0f', rule_cancelledFrom + now))
  return drop_kept(with_few_lines(over))
end

-- If bodies cannot be read, their jobs stay: this runs after other writes.
local function trim_dead(events, now)
  local over = beyond(key_dead, expired(key_dead, '-inf', now - arg_deadAge), arg_deadMax)
  local bodies = #over > 0 and bodies_of(over)
  if not bodies or bodies.err then return 0 end
  local traces = { key_attempts, key_stalls, key_failures, key_progress, key_logs, has_slots = (tonumber(redis.pcall('ZCARD', key_slots)) or 0) > 0 }
  leave_dead(over)
  finish_removed(over, add_names({}, bodies), 'retention', events, traces)
  return #over, traces.has_freed
end
