--@needs steps, count, logs, slots
-- Data of jobs outside of their bodies: failed attempts, stalls, the last failure, progress, log, the priority of a delayed job,
-- the cancellation of a running one, and its slot.

-- The keys that have any such data, so that needless deletes are skipped, and `has_cancels`. It checks the types, so
-- it must run before the first write. Usually one command finds that there is nothing.
local function read_traces()
  local traces = { has_cancels = false, has_slots = false }
  if redis.call('EXISTS', key_attempts, key_stalls, key_failures, key_progress, key_logs, key_priorities, key_toCancel, key_slots) == 0 then
    return traces
  end
  traces.has_slots = redis.call('ZCARD', key_slots) > 0
  for _, key in ipairs({ key_attempts, key_stalls, key_failures, key_progress, key_logs, key_priorities, key_toCancel }) do
    if redis.call('HLEN', key) > 0 then traces[#traces + 1] = key end
  end
  traces.has_cancels = traces[#traces] == key_toCancel
  return traces
end

-- Frees the slots of these jobs. `how` is explained at `release_slots`. Sets `has_freed` if there were any: other jobs may start.
local function free_slots(ids, traces, how)
  if traces.has_slots and #ids > 0 and release_slots(ids, how) then traces.has_freed = true end
end

-- How long it takes to delete the log of this job, as the number of bytes that could be read meanwhile: a call with `bytes` deletes
-- about `rule_linesDropped` lines.
local function log_cost(id, traces)
  if traces.has_logs == nil then traces.has_logs = redis.call('EXISTS', key_logs) == 1 end
  return traces.has_logs and math.ceil(lines_in(redis.call('HGET', key_logs, id)) * arg_bytes / rule_linesDropped) or 0
end

local function forget_traces(ids, traces)
  free_slots(ids, traces, 'gone')
  if #traces == 0 then return end
  in_steps(ids, function(...)
    for i = 1, #traces do if traces[i] == key_logs then drop_logs({ ... }) else redis.call('HDEL', traces[i], ...) end end
  end)
end

-- For jobs that are kept as completed: their earlier failures are deleted.
local function forget_runs(ids, traces)
  free_slots(ids, traces, 'gone')
  if #traces == 0 then return end
  for _, key in ipairs({ key_attempts, key_stalls }) do redis.call('HDEL', key, unpack(ids)) end
  if traces.has_cancels then redis.call('HDEL', key_toCancel, unpack(ids)) end
end

-- The record of a failure with the entries of the last failed attempts, as a field in front of the others: an older version skips
-- it. If a handler has failed, `record` has a line with its entry before the record. The first attempt begins a new list.
local function with_attempts(id, record, now)
  local entry, last = string.match(record, '^{(.*)\n{(.*)$')
  local begins = entry and string.find(entry, '"attempt":1,', 1, true) == 1
  local before = not begins and redis.call('HGET', key_failures, id) or ''
  -- A pattern would look at each character of the entries.
  local first = string.match(before, '^%d+\n{"log":%[()')
  local stop_at = first and string.find(before, '],"name":', first, true)
  local log = stop_at and string.sub(before, first, stop_at - 1) or ''
  if entry then log = '{"at":' .. now .. ',' .. entry .. (log ~= '' and ',' .. log or '') end
  local stop = 0
  for _ = 1, rule_attemptsKept do stop = string.find(log, '},{"at":', stop + 1, true) or #log end
  if log == '' then return record end
  return '{"log":[' .. string.sub(log, 1, stop) .. '],' .. (last or string.sub(record, 2))
end

local function note_failure(id, record, now) redis.call('HSET', key_failures, id, now .. '\n' .. record) end

-- A value of 0 means that the job has started without a failure. Such a job never expires.
local function add_attempts(id, failed) add_to(key_attempts, id, failed) end

local function mark_started(ids)
  local fields = {}
  for i, id in ipairs(ids) do fields[2 * i - 1], fields[2 * i] = id, '0' end
  in_steps(fields, function(...) redis.call('HSET', key_attempts, ...) end)
end

local function add_stall(id) return add_to(key_stalls, id, 1) end

-- Marks jobs at the head of `wait` in a queue with lines, with 0 stalls. The next claim moves them to the front of their lines. It
-- cannot see that from their place in `wait`.
local function mark_front(ids)
  for _, id in ipairs(ids) do redis.call('HSETNX', key_stalls, id, '0') end
end

-- Marks jobs that were given back by a worker, if the queue has lines.
local function mark_returned(ids)
  if string.find(redis.call('HGET', key_meta, 'limited') or '', '[agn]') then mark_front(ids) end
end

-- Marks a running job as cancelled. The next heartbeat tells its worker. Unless the job completes, it ends as cancelled. The first reason
-- stays. `keep`: how many ms the job is kept after its end.
local function mark_cancelled(id, reason, keep)
  redis.call('HSETNX', key_toCancel, id, keep > 0 and reason .. '\n' .. string.format('%.0f', keep) or reason)
end

-- Whether a job that leaves its worker without having completed was cancelled meanwhile. Then it goes no further. `cancelled`
-- collects ids, reasons, and how many ms each is kept.
local function is_cancelled(id, traces, cancelled)
  local reason = traces.has_cancels and redis.call('HGET', key_toCancel, id)
  if not reason then return false end
  cancelled.ids[#cancelled.ids + 1] = id
  local text, keep = string.match(reason, '^([^\n]*)\n?(%d*)$')
  cancelled.reasons[#cancelled.ids] = text or reason
  cancelled.keeps[#cancelled.ids] = tonumber(keep) or 0
  return true
end
