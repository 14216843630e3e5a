--@needs logs
-- The last failure without the entries of the attempts before it.
local function last_failure(id)
  local record = redis.call('HGET', key_failures, id) or ''
  -- A pattern would look at each character of the entries, which takes several times as long.
  local time, entries = string.match(record, '^(%d+\n{)"log":%[()')
  local stop = time and string.find(record, '],"name":', entries, true)
  return stop and time .. string.sub(record, stop + 2) or record
end

-- One job, in the order in which `storedJob` reads it. A brief answer leaves out data, progress, log and earlier attempts, and keeps only the time
-- of a large record of its end.
local function stored(id, body, state, at, worker, is_brief)
  local result = redis.call('HGET', key_results, id) or ''
  local progress, log = '', ''
  if is_brief then
    body = string.match(body, '^[^\n]*\n[^\n]*\n[^\n]*\n') or ''
    local ended_at = string.match(result, '^%d+\n')
    if ended_at and #result > rule_briefResult then result = ended_at .. '{}' end
  else
    progress, log = redis.call('HGET', key_progress, id) or '', read_log(id)
  end
  return { body, state, at, worker, redis.call('HGET', key_attempts, id) or '', redis.call('HGET', key_stalls, id) or '',
    is_brief and last_failure(id) or redis.call('HGET', key_failures, id) or '', result, progress, log,
    state == 'active' and redis.call('HGET', key_toCancel, id) or '' }
end
